//! PyTorch files that nobody should trust: nothing in them is run, and each is an error that says what it asked for.

use crate::archive::{Archive, Pickle};
use crate::scratch::stored;
use volta::{Device, ErrorKind, Weights};
use volta_testing::test;

fn refused(bytes: Vec<u8>, parts: &[&str]) {
    let error = Weights::from_bytes(bytes).err().unwrap_or_else(|| panic!("{parts:?} was accepted"));
    assert_eq!(error.kind(), ErrorKind::Data);
    for part in parts {
        assert!(error.to_string().contains(part), "{error} does not say {part:?}");
    }
}

fn pickle_refused(pickle: Vec<u8>, parts: &[&str]) {
    refused(Archive::new(pickle, &[&[0; 16]]).bytes(), parts);
}

#[test]
fn what_would_run_code_is_named_and_not_run() {
    let attack = |module: &str, name: &str| {
        Pickle::holding(|p| p.global(module, name).raw(b"(").text("echo attacked").raw(b"tR"))
    };
    for (module, name) in
        [("os", "system"), ("builtins", "eval"), ("torch", "load"), ("torch._utils", "_rebuild_tensor_v9")]
    {
        pickle_refused(attack(module, name), &[&format!("{module}.{name}"), "nothing was run"]);
    }
    refused(std::fs::read(stored("torch_module.pt")).unwrap(), &["torch.nn.modules", "state_dict"]);
    // The same by a name that is put together on the stack.
    let stacked = Pickle::holding(|p| p.text("posix").text("system").raw(b"\x93"));
    pickle_refused(stacked, &["posix.system"]);
}

#[test]
fn opcodes_that_state_dictionaries_do_not_need_are_named() {
    for (opcode, name) in
        [(b'i', "0x69"), (b'o', "0x6f"), (0x81, "0x81"), (0x92, "0x92"), (b'P', "0x50"), (0x82, "0x82")]
    {
        pickle_refused(Pickle::new().raw(b"}").raw(&[opcode, 0, 0, 0]).0, &[name]);
    }
}

#[test]
fn pickles_that_make_no_sense_are_refused() {
    for bytes in [
        &b"."[..],
        b"",
        b"}",
        b"}(u",
        b"}u.",
        b"}t.",
        b"}(K\x01u.",
        b"h\x00.",
        b"K\x01K\x02R.",
        b"NK\x01b.",
        b"X\xff\xff\xff\xffabc",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffabc",
        b"X\x02\x00\x00\x00\xff\xfe.",
        b"]K\x01K\x02s.",
        b"\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01.",
        b"}}K\x01s.",
        b"N(Q",
        b"(K\x01",
        b"\x85",
        b"(}0",
        b"cos\nsystem",
    ] {
        let archive = Archive::new(Pickle::new().raw(bytes).0, &[]);
        let opened = Weights::from_bytes(archive.bytes());
        assert!(opened.is_err(), "{:?} was accepted", bytes.escape_ascii().to_string());
    }
    pickle_refused(Pickle::new().raw(b"K\x01.").0, &["dictionary"]);
}

#[test]
fn tensors_beyond_their_elements_are_refused_by_name() {
    let tensor = |offset: i32, shape: &[i32], strides: &[i32]| {
        Pickle::holding(|p| p.tensor("FloatStorage", offset, shape, strides))
    };
    let fine = Archive::new(tensor(2, &[2], &[1]), &[&[0; 16]]).bytes();
    assert_eq!(
        Weights::from_bytes(fine).unwrap().tensor("w", Device::Cpu).unwrap().to_vec::<f32>(),
        [0.0; 2]
    );
    for (offset, shape, strides) in [
        (0, &[5][..], &[1][..]),
        (3, &[2], &[1]),
        (0, &[2], &[4]),
        (0, &[2, 2], &[i32::MAX, i32::MAX]),
        (-1, &[1], &[1]),
        (0, &[-1], &[1]),
        (0, &[1], &[-1]),
        (0, &[2, 2], &[1]),
        (0, &[i32::MAX, i32::MAX, i32::MAX], &[0, 0, 0]),
        (i32::MAX, &[1], &[1]),
        // Windows that overlap would make much of little.
        (0, &[3, 2, 2], &[1, 1, 1]),
    ] {
        pickle_refused(tensor(offset, shape, strides), &[]);
    }
    pickle_refused(tensor(0, &[5], &[1]), &["tensor \"w\"", "[5]", "4 elements"]);
    pickle_refused(Pickle::holding(|p| p.tensor("QInt8Storage", 0, &[1], &[1])), &["torch.QInt8Storage"]);
    refused(Archive::new(tensor(0, &[1], &[1]), &[]).bytes(), &["tensor \"w\"", "net/data/0"]);
}

#[test]
fn what_is_repeated_a_million_times_takes_no_memory() {
    let huge = Pickle::holding(|p| p.tensor("FloatStorage", 0, &[1 << 20, 1 << 20, 2], &[0, 0, 1]));
    let weights = Weights::from_bytes(Archive::new(huge, &[&[0; 8]]).bytes()).unwrap();
    let t = weights.tensor("w", Device::Cpu).unwrap();
    assert_eq!(t.shape()[..], [1 << 20, 1 << 20, 2]);
    assert_eq!(t.narrow(0, 0, 2).narrow(1, 5, 1).to_vec::<f32>(), [0.0; 4]);
}

#[test]
fn containers_that_hold_themselves_or_each_other_many_times_are_refused() {
    // A dictionary that is its own member.
    pickle_refused(Pickle::new().raw(b"}q\x00").text("a").raw(b"h\x00s.").0, &["deeper"]);
    // Each level holds the one before twice: 2^60 names.
    let mut laughs = Pickle::new().raw(b"}").text("x").raw(b"K\x01sq\x00");
    for level in 1..60u8 {
        laughs = laughs.raw(b"}").text("a").raw(&[b'h', level - 1, b's']).text("b").raw(&[
            b'h',
            level - 1,
            b's',
            b'q',
            level,
        ]);
    }
    pickle_refused(laughs.raw(b".").0, &["too many objects"]);
    // One long text under many names.
    let mut texts = Pickle::new().raw(b"}").text("a").text(&"x".repeat(1 << 20)).raw(b"q\x00s");
    for k in 0..200 {
        texts = texts.text(&format!("k{k}")).raw(b"h\x00s");
    }
    pickle_refused(texts.raw(b".").0, &["too many objects"]);
}

/// What a file may describe is bounded by its size.
#[test]
fn a_small_file_does_not_describe_millions_of_objects() {
    // A list of two thousand numbers that is named three thousand times.
    let mut lists = Pickle::new().raw(b"}").text("a").raw(b"](");
    for _ in 0..2000 {
        lists = lists.raw(b"K\x01");
    }
    lists = lists.raw(b"eq\x00s").text("b").raw(b"](");
    for _ in 0..3000 {
        lists = lists.raw(b"h\x00");
    }
    let pickle = lists.raw(b"es.").0;
    assert!(pickle.len() < 11_000);
    pickle_refused(pickle, &["too many objects"]);
    // What describes its objects one by one may have as many as it likes.
    let mut plain = Pickle::new().raw(b"}(");
    for k in 0..2000 {
        plain = plain.text(&format!("a name that is rather long.{k}")).raw(b"](");
        plain = (0..20).fold(plain, |plain, _| plain.raw(b"K\x01")).raw(b"e");
    }
    assert!(Weights::from_bytes(Archive::new(plain.raw(b"u.").0, &[]).bytes()).is_ok());
}

/// Names of Python's and messages are not put together from texts of any length, again and again.
#[test]
fn long_names_are_refused_and_messages_stay_short() {
    let long = "x".repeat(1 << 20);
    let refused = |pickle: Pickle| {
        let error = Weights::from_bytes(Archive::new(pickle.0, &[]).bytes()).unwrap_err();
        assert!(error.message().len() < 5_000, "{:.300}", error.message());
    };
    refused(Pickle::new().text(&long).text("system").raw(b"\x93."));
    refused(Pickle::new().global("torch", &long));
    let call = Pickle::new().global("torch._utils", "_rebuild_tensor_v2").raw(b"(").text(&long).raw(b"q\x00");
    refused((0..60).fold(call, |call, _| call.raw(b"h\x00")).raw(b"tR."));
}

#[test]
fn two_tensors_of_one_name_are_refused() {
    let w = |p: Pickle| p.tensor("FloatStorage", 0, &[1], &[1]);
    let pickle = w(w(Pickle::new().raw(b"}(").text("w")).text("w")).raw(b"u.").0;
    pickle_refused(pickle, &["two tensors are called \"w\""]);
}

#[test]
fn archives_that_make_no_sense_are_refused() {
    let pickle = Pickle::holding(|p| p.tensor("FloatStorage", 0, &[1], &[1]));
    let good = Archive::new(pickle.clone(), &[&[0; 4]]);
    assert!(Weights::from_bytes(good.bytes()).is_ok());
    refused(Archive { method: 8, ..good.clone() }.bytes(), &["compressed"]);
    refused(good.clone().with("net/data.pkl", b".").bytes(), &["two of its entries", "net/data.pkl"]);
    refused(good.clone().with("net/byteorder", b"big").bytes(), &["big-endian"]);
    refused(good.clone().with("net/code/net.py", b"").bytes(), &["TorchScript"]);
    refused(Archive { entries: vec![("a.txt".into(), vec![])], ..good.clone() }.bytes(), &["no data.pkl"]);
    refused(b"PK\x03\x04".to_vec(), &["cut off"]);
    assert!(Weights::from_bytes(good.clone().with("net/byteorder", b"little").bytes()).is_ok());
}

#[test]
fn files_from_before_1_6_say_what_to_do() {
    let error = Weights::open(stored("torch_old.pt")).unwrap_err();
    assert!(error.message().contains("torch_old.pt") && error.message().contains("save it again"), "{error}");
}

/// Whatever happens, no byte may bring the program down; prefixes are always refused.
#[test]
fn every_prefix_is_refused_and_no_byte_brings_the_program_down() {
    for name in ["torch_views.pt", "torch_protocol4.pt"] {
        let whole = std::fs::read(stored(name)).unwrap();
        for end in 0..whole.len() {
            refused(whole[..end].to_vec(), &[]);
        }
        for at in 0..whole.len() {
            for value in [0, 1, b'.', 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                if let Ok(weights) = Weights::from_bytes(bytes) {
                    for name in weights.names() {
                        let _ = weights.tensor(name, Device::Cpu);
                    }
                }
            }
        }
    }
}
