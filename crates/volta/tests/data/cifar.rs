//! CIFAR's binary files, extracted and in their archive.

use crate::{Folder, bytes, class, gzip};
use volta::ErrorKind;
use volta::data::{Cifar10, Cifar100, Dataset};
use volta_testing::test;

/// `count` records: labels, then pixels that begin with the record's number.
fn records(count: u8, labels: impl Fn(u8) -> Vec<u8>) -> Vec<u8> {
    (0..count)
        .flat_map(|k| {
            let mut record = labels(k);
            record.push(k);
            record.extend((1..3072u32).map(|p| p as u8));
            record
        })
        .collect()
}

fn tar(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, content) in files {
        let mut header = [0u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = if name.ends_with('/') { b'5' } else { b'0' };
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|&b| u32::from(b)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        archive.extend(header);
        archive.extend(content);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

fn ten_files() -> Vec<(String, Vec<u8>)> {
    (1..=5u8)
        .map(|n| (format!("data_batch_{n}.bin"), records(2, |k| vec![n + k])))
        .chain([("test_batch.bin".to_string(), records(3, |k| vec![9 - k]))])
        .collect()
}

#[test]
fn cifar_10_is_read_from_its_files_from_the_folder_around_them_and_from_the_archive() {
    let (files, around, archive) = (Folder::new("cifar-a"), Folder::new("cifar-b"), Folder::new("cifar-c"));
    let mut entries = vec![("cifar-10-batches-bin/".to_string(), vec![])];
    for (name, content) in ten_files() {
        files.write(&name, &content);
        around.write(&format!("cifar-10-batches-bin/{name}"), &content);
        entries.push((format!("cifar-10-batches-bin/{name}"), content));
    }
    entries.push(("cifar-10-batches-bin/readme.html".to_string(), vec![1; 700]));
    let entries: Vec<(&str, Vec<u8>)> = entries.iter().map(|(n, c)| (n.as_str(), c.clone())).collect();
    let zipped = archive.write("cifar-10-binary.tar.gz", &gzip(&tar(&entries)));
    for path in [files.path(), around.path(), archive.path(), &zipped] {
        let train = Cifar10::train(path).expect("five files of two");
        assert_eq!((train.len(), train.shape()), (10, [3, 32, 32]));
        assert_eq!(train.classes(), [1, 2, 2, 3, 3, 4, 4, 5, 5, 6]);
        let sample = train.get(3).expect("an image");
        assert_eq!((bytes(&sample.input)[..3].to_vec(), class(&sample.target)), (vec![1, 1, 2], 3));
        assert_eq!(Cifar10::test(path).expect("one file of three").classes(), [9, 8, 7]);
    }
}

#[test]
fn cifar_100_has_fine_and_coarse_labels() {
    let folder = Folder::new("cifar-100");
    folder.write("cifar-100-binary/train.bin", &records(3, |k| vec![k + 10, k + 90]));
    folder.write("cifar-100-binary/test.bin", &records(1, |_| vec![19, 99]));
    assert_eq!(Cifar100::train(folder.path()).expect("train").classes(), [90, 91, 92]);
    assert_eq!(Cifar100::train_coarse(folder.path()).expect("train").classes(), [10, 11, 12]);
    assert_eq!(Cifar100::test(folder.path()).expect("test").classes(), [99]);
    assert_eq!(Cifar100::test_coarse(folder.path()).expect("test").classes(), [19]);
}

#[test]
fn damaged_files_and_archives_are_errors_that_name_them() {
    let whole = tar(&[("x/test_batch.bin", records(1, |_| vec![3]))]);
    let mut wrong_sum = whole.clone();
    wrong_sum[0] = b'y';
    let mut endless = whole.clone();
    endless[124..135].copy_from_slice(b"77777777777");
    endless[148..156].fill(b' ');
    let sum: u32 = endless[..512].iter().map(|&b| u32::from(b)).sum();
    endless[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let rows: [(&str, &str, Vec<u8>, &str); 7] = [
        ("short", "test_batch.bin", vec![0; 3072], "3072 bytes are not a whole number of records of 3073"),
        ("empty", "test_batch.bin", vec![], "0 bytes"),
        ("label", "test_batch.bin", records(2, |k| vec![9 + k]), "sample 1 is of class 10"),
        ("sum", "cifar-10-binary.tar.gz", gzip(&wrong_sum), "a header of the archive is wrong"),
        ("endless", "cifar-10-binary.tar.gz", gzip(&endless), "and has fewer"),
        ("other", "cifar-10-binary.tar.gz", gzip(&tar(&[("a.bin", vec![1])])), "has no test_batch.bin"),
        ("cut", "cifar-10-binary.tar.gz", whole[..1000].to_vec(), "and has fewer"),
    ];
    for (name, file, content, text) in rows {
        let folder = Folder::new(&format!("cifar-{name}"));
        folder.write(file, &content);
        let error = Cifar10::test(folder.path()).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Data, "{name}: {error}");
        assert!(error.message().contains(text), "{name}: {error}");
        assert!(error.message().contains(&format!("cifar-{name}")), "{name}: {error}");
    }
    let nothing = Folder::new("cifar-nothing");
    let error = Cifar10::train(nothing.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("neither data_batch_1.bin nor cifar-10-binary.tar.gz"), "{error}");
}
