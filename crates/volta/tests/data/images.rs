//! Image files and folders of them.

use crate::{Folder, bytes, class};
use volta::ErrorKind;
use volta::data::{DataLoader, Dataset, ImageFolder, Resize, decode_image, read_image};
use volta_testing::test;

/// Red, green, blue, and a mixture: two by two, row by row.
const COLOURS: [[u8; 3]; 4] = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [10, 20, 30]];

fn planes() -> Vec<u8> {
    (0..3).flat_map(|k| COLOURS.map(|c| c[k])).collect()
}

fn png(colour: png::ColorType, depth: png::BitDepth, width: u32, height: u32, data: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(colour);
    encoder.set_depth(depth);
    let mut writer = encoder.write_header().expect("memory takes everything");
    writer.write_image_data(data).expect("memory takes everything");
    drop(writer);
    file
}

fn png_rgb() -> Vec<u8> {
    png(png::ColorType::Rgb, png::BitDepth::Eight, 2, 2, &COLOURS.concat())
}

fn ppm() -> Vec<u8> {
    [b"P6 # made here\n2\t2 255\n".to_vec(), COLOURS.concat()].concat()
}

/// A BMP of 2 × 2 with `bits` a pixel.
fn bmp(bits: u16, top_down: bool) -> Vec<u8> {
    let palette: Vec<u8> =
        if bits == 8 { COLOURS.iter().flat_map(|c| [c[2], c[1], c[0], 0]).collect() } else { vec![] };
    let start = 54 + palette.len() as u32;
    let mut file = b"BM".to_vec();
    file.extend([0, 0]);
    file.extend(
        [start, 40, 2, if top_down { -2i32 as u32 } else { 2 }].into_iter().flat_map(u32::to_le_bytes),
    );
    file.splice(2..4, [0; 8]);
    file.extend([1, 0]);
    file.extend(bits.to_le_bytes());
    file.extend([0; 24]);
    file.extend(palette);
    for row in if top_down { [0, 1] } else { [1, 0] } {
        for k in [2 * row, 2 * row + 1] {
            let [r, g, b] = COLOURS[k];
            match bits {
                8 => file.push(k as u8),
                24 => file.extend([b, g, r]),
                _ => file.extend([b, g, r, 255]),
            }
        }
        file.resize(start as usize + (file.len() - start as usize).next_multiple_of(4), 0);
    }
    file
}

/// A JPEG of one block of 8 × 8 in one colour, each channel given as its distance from 128: 64 up to 127, or as far
/// below. Its tables have one code each: a difference of seven bits, and the end of a block.
fn jpeg(channels: &[i32]) -> Vec<u8> {
    let count = channels.len() as u8;
    let mut file = vec![0xff, 0xd8];
    let mut segment = |marker: u8, content: &[u8]| {
        file.extend([0xff, marker]);
        file.extend((content.len() as u16 + 2).to_be_bytes());
        file.extend(content);
    };
    segment(0xdb, &[&[0][..], &[8; 64]].concat());
    let parts: Vec<u8> = (1..=count).flat_map(|id| [id, 0x11, 0]).collect();
    segment(0xc0, &[&[8, 0, 8, 0, 8, count][..], &parts].concat());
    let one_code = |class: u8, symbol: u8| [&[class, 1][..], &[0; 15], &[symbol]].concat();
    segment(0xc4, &one_code(0x00, 7));
    segment(0xc4, &one_code(0x10, 0));
    let parts: Vec<u8> = (1..=count).flat_map(|id| [id, 0]).collect();
    segment(0xda, &[&[count][..], &parts, &[0, 63, 0]].concat());
    let mut bits = String::new();
    for &c in channels {
        let code = if c > 0 { c } else { c + 127 };
        bits.push_str(&format!("0{code:07b}0"));
    }
    while !bits.len().is_multiple_of(8) {
        bits.push('1');
    }
    file.extend((0..bits.len()).step_by(8).map(|k| u8::from_str_radix(&bits[k..k + 8], 2).expect("bits")));
    file.extend([0xff, 0xd9]);
    file
}

#[test]
fn every_format_gives_the_same_pixels() {
    let alpha: Vec<u8> = COLOURS.iter().flat_map(|c| [c[0], c[1], c[2], 7]).collect();
    let deep: Vec<u8> = COLOURS.concat().iter().flat_map(|&b| [b, 99]).collect();
    for (name, file) in [
        ("png", png_rgb()),
        ("png with alpha", png(png::ColorType::Rgba, png::BitDepth::Eight, 2, 2, &alpha)),
        ("png of 16 bits", png(png::ColorType::Rgb, png::BitDepth::Sixteen, 2, 2, &deep)),
        ("ppm", ppm()),
        ("bmp of 24 bits", bmp(24, false)),
        ("bmp of 32 bits", bmp(32, false)),
        ("bmp from the top", bmp(24, true)),
        ("bmp with a palette", bmp(8, false)),
    ] {
        let image = decode_image(&file).expect(name);
        assert_eq!(image.shape()[..], [3, 2, 2], "{name}");
        assert_eq!(bytes(&image), planes(), "{name}");
    }
}

#[test]
fn grey_is_three_equal_channels() {
    let grey = [[3, 200].as_slice(); 3].concat();
    for file in [
        png(png::ColorType::Grayscale, png::BitDepth::Eight, 2, 1, &[3, 200]),
        png(png::ColorType::GrayscaleAlpha, png::BitDepth::Eight, 2, 1, &[3, 0, 200, 9]),
        [&b"P5 2 1 255 "[..], &[3, 200]].concat(),
    ] {
        assert_eq!(bytes(&decode_image(&file).expect("grey")), grey);
    }
    // A largest value of 15: each step is 17.
    let coarse = decode_image(&[&b"P5\n2 1\n15\n"[..], &[1, 15]].concat()).expect("grey");
    assert_eq!(bytes(&coarse)[..2], [17, 255]);
}

#[test]
fn jpeg_colours_come_out() {
    let grey = decode_image(&jpeg(&[72])).expect("a grey block");
    assert_eq!(grey.shape()[..], [3, 8, 8]);
    assert!(bytes(&grey).iter().all(|&p| p.abs_diff(200) <= 1), "{:?}", bytes(&grey));
    // Y 200, Cb 192, Cr 64.
    let colour = bytes(&decode_image(&jpeg(&[72, 64, -64])).expect("a coloured block"));
    for (k, expected) in [110u8, 224, 255].into_iter().enumerate() {
        let plane = &colour[64 * k..64 * (k + 1)];
        assert!(plane.iter().all(|p| p.abs_diff(expected) <= 2), "channel {k}: {plane:?}");
    }
}

#[test]
fn damaged_images_are_errors_that_name_the_file() {
    let folder = Folder::new("images-damaged");
    let mut huge_bmp = bmp(24, false);
    huge_bmp[18..26].fill(0x7f);
    let mut far_bmp = bmp(24, false);
    far_bmp[10..14].fill(0xff);
    let cut = |file: Vec<u8>| file[..file.len() / 2].to_vec();
    let rows: [(&str, Vec<u8>); 11] = [
        ("empty.png", vec![]),
        ("text.png", b"no image at all".to_vec()),
        ("cut.png", cut(png_rgb())),
        ("cut.jpg", cut(jpeg(&[72]))),
        ("cut.bmp", cut(bmp(24, false))),
        ("huge.bmp", huge_bmp),
        ("far.bmp", far_bmp),
        ("cut.ppm", ppm()[..ppm().len() - 1].to_vec()),
        ("head.ppm", b"P6 2".to_vec()),
        ("huge.ppm", b"P6 99999999999 99999999999 255 x".to_vec()),
        ("deep.ppm", b"P6 1 1 65535 abcdef".to_vec()),
    ];
    for (name, content) in rows {
        let error = read_image(folder.write(name, &content)).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
        assert!(error.message().contains(name), "{error}");
    }
    assert_eq!(read_image(folder.path().join("none.png")).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_folder_has_a_class_for_every_folder_in_it() {
    let folder = Folder::new("images-folder");
    folder.write("dogs/b.PPM", &ppm());
    folder.write("dogs/a.png", &png_rgb());
    folder.write("dogs/notes.txt", b"not an image");
    folder.write("dogs/.hidden.png", b"");
    folder.write("cats/1.jpg", &jpeg(&[72]));
    folder.write("cats/more/2.bmp", &bmp(24, false));
    folder.write("stray.png", &png_rgb());
    let data = ImageFolder::open(folder.path()).expect("four images");
    assert_eq!(data.classes(), ["cats", "dogs"]);
    let names: Vec<_> = (0..data.len()).map(|k| data.path(k).file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["1.jpg", "2.bmp", "a.png", "b.PPM"]);
    assert_eq!((0..4).map(|k| class(&data.get(k).unwrap().target)).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(bytes(&data.get(3).expect("a ppm").input), planes());

    let error = DataLoader::over(data.clone(), 4).try_iter().next().expect("a result").unwrap_err();
    assert!(error.message().contains("sample 1: its input is u8 [3, 2, 2]"), "{error}");
    let (x, y) =
        DataLoader::over(data.map(Resize::new(4, 4)), 4).with_workers(2).into_iter().next().expect("a batch");
    assert_eq!(x.shape()[..], [4, 3, 4, 4]);
    assert_eq!(y.to_vec::<i32>(), [0, 0, 1, 1]);
}

#[test]
fn a_broken_image_in_a_folder_fails_with_its_index_and_file() {
    let folder = Folder::new("images-broken");
    folder.write("a/1.png", &png_rgb());
    folder.write("a/2.png", b"\x89PNG and nothing more");
    for workers in [0, 2] {
        let data = ImageFolder::open(folder.path()).expect("two files");
        let loader = DataLoader::over(data, 1).with_workers(workers);
        let error = loader.try_iter().find_map(Result::err).expect("the second fails");
        assert!(error.message().starts_with("sample 1: "), "{error}");
        assert!(error.message().contains("2.png"), "{error}");
    }
    let empty = Folder::new("images-empty");
    assert!(ImageFolder::open(empty.path()).unwrap_err().message().contains("one folder a class"));
    assert_eq!(ImageFolder::open(empty.path().join("none")).unwrap_err().kind(), ErrorKind::Io);
}
