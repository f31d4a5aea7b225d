//! MNIST's files: plain, gzipped, damaged, hostile, and the real ones.

use crate::{Folder, bytes, class, gzip};
use std::path::Path;
use volta::data::{DataLoader, Dataset, FashionMnist, LabeledImages, Mnist, ToFloat};
use volta::{ErrorKind, Result};
use volta_testing::test;

/// An IDX file of bytes.
fn idx(extents: &[u32], elements: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, extents.len() as u8];
    file.extend(extents.iter().flat_map(|e| e.to_be_bytes()));
    file.extend(elements);
    file
}

/// Three images of 2 × 2 with their labels.
fn images() -> Vec<u8> {
    idx(&[3, 2, 2], &(0..12).map(|k| k * 20).collect::<Vec<u8>>())
}

fn labels() -> Vec<u8> {
    idx(&[3], &[7, 0, 9])
}

fn written(test: &str, images: &[u8], labels: &[u8]) -> (Folder, Result<LabeledImages>) {
    let folder = Folder::new(test);
    folder.write("train-images-idx3-ubyte", images);
    folder.write("train-labels-idx1-ubyte", labels);
    let read = Mnist::train(folder.path());
    (folder, read)
}

#[test]
fn plain_and_gzipped_files_are_read_alike() {
    let folder = Folder::new("idx-alike");
    folder.write("train-images-idx3-ubyte", &images());
    folder.write("train-labels-idx1-ubyte.gz", &gzip(&labels()));
    folder.write("t10k-images-idx3-ubyte.gz", &gzip(&images()));
    folder.write("t10k-labels-idx1-ubyte", &labels());
    let from_bytes = Mnist::from_bytes(&gzip(&images()), &labels());
    for data in [Mnist::train(folder.path()), FashionMnist::test(folder.path()), from_bytes] {
        let data = data.expect("three images");
        assert_eq!((data.len(), data.shape()), (3, [1, 2, 2]));
        let last = data.get(2).expect("the last");
        assert_eq!((bytes(&last.input), class(&last.target)), (vec![160, 180, 200, 220], 9));
        let (x, y) = DataLoader::over(data.map(ToFloat), 3).into_iter().next().expect("a batch");
        assert_eq!(x.shape()[..], [3, 1, 2, 2]);
        assert_eq!(x.to_vec::<f32>()[11], 220.0 / 255.0);
        assert_eq!(y.to_vec::<i32>(), [7, 0, 9]);
    }
}

#[test]
fn damaged_and_hostile_files_are_errors_that_name_the_file() {
    let cut = |file: Vec<u8>, end: usize| file[..end].to_vec();
    let zipped = gzip(&images());
    let huge = u32::MAX;
    let rows: [(&str, Vec<u8>, Vec<u8>, &str); 14] = [
        ("empty", vec![], labels(), "4 bytes of IDX magic"),
        ("no-magic", cut(images(), 3), labels(), "4 bytes of IDX magic"),
        ("no-extents", cut(images(), 10), labels(), "4 bytes of IDX extents"),
        ("short", cut(images(), 27), labels(), "12 bytes of elements"),
        ("long", [images(), vec![0]].concat(), labels(), "goes on after its end"),
        ("another-rank", labels(), labels(), "begins with [0, 0, 8, 1]"),
        ("another-type", [&[0, 0, 13], &images()[3..]].concat(), labels(), "begins with [0, 0, 13, 3]"),
        ("overflowing", idx(&[huge, huge, huge], &[1; 12]), labels(), "extents"),
        ("too-large", idx(&[huge, huge, 1], &[1; 12]), labels(), "bytes of elements"),
        ("too-large-zipped", gzip(&idx(&[huge, huge, 1], &[1; 12])), labels(), "bytes of elements"),
        ("cut-gzip", cut(zipped.clone(), zipped.len() - 9), labels(), "gzip stream"),
        ("broken-gzip", [&zipped[..zipped.len() - 8], &[0; 8]].concat(), labels(), "gzip stream"),
        ("other-count", images(), idx(&[2], &[1, 2]), "2 labels for the 3 images"),
        ("class", images(), idx(&[3], &[1, 10, 2]), "sample 1 is of class 10"),
    ];
    for (name, images, labels, text) in rows {
        let (_folder, read) = written(&format!("idx-{name}"), &images, &labels);
        let error = read.expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Data, "{name}: {error}");
        assert!(error.message().contains(text), "{name}: {error}");
        let file = if ["other-count", "class"].contains(&name) { "train-labels" } else { "train-images" };
        assert!(error.message().contains(file), "{name}: {error}");
        assert_eq!(error.op(), "Mnist::train", "{name}: {error}");
    }
}

#[test]
fn missing_files_are_an_error_that_says_what_to_do() {
    let folder = Folder::new("idx-missing");
    let error = Mnist::test(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    for part in ["t10k-images-idx3-ubyte or t10k-images-idx3-ubyte.gz", "idx-missing", "Mnist::download"] {
        assert!(error.message().contains(part), "{error}");
    }
}

/// The real files, where they are.
#[test]
fn the_real_mnist_is_read_if_volta_data_names_its_folder() {
    let Some(folder) = std::env::var_os("VOLTA_DATA") else {
        println!("left out: VOLTA_DATA does not name a folder that has mnist/");
        return;
    };
    let folder = Path::new(&folder).join("mnist");
    let (train, test) = (Mnist::train(&folder).expect("train"), Mnist::test(&folder).expect("test"));
    assert_eq!((train.len(), test.len()), (60_000, 10_000));
    assert_eq!(train.shape(), [1, 28, 28]);
    assert_eq!(train.classes()[..10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
    assert_eq!(test.classes()[..10], [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]);
    // The mean and deviation that everybody normalises by.
    let pixels = train.pixels();
    let mean = pixels.iter().map(|&p| f64::from(p) / 255.0).sum::<f64>() / pixels.len() as f64;
    let square = pixels.iter().map(|&p| (f64::from(p) / 255.0 - mean).powi(2)).sum::<f64>();
    assert!((mean - 0.1307).abs() < 1e-4, "{mean}");
    assert!(((square / pixels.len() as f64).sqrt() - 0.3081).abs() < 1e-4);
}
