//! Where the datasets are published, and the SHA-256 of their files.

use super::{Download, download};
use crate::call::Call;
use crate::data::{Cifar10, Cifar100, FashionMnist, Mnist};
use crate::error::Result;
use std::path::Path;

/// Files of one place, with their checksums.
struct Published {
    base: &'static str,
    files: &'static [(&'static str, &'static str)],
}

const MNIST: Published = Published {
    base: "https://ossci-datasets.s3.amazonaws.com/mnist",
    files: &[
        ("train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        ("train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        ("t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        ("t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    ],
};

const FASHION_MNIST: Published = Published {
    base: "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    files: &[
        ("train-images-idx3-ubyte.gz", "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        ("train-labels-idx1-ubyte.gz", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        ("t10k-images-idx3-ubyte.gz", "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        ("t10k-labels-idx1-ubyte.gz", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    ],
};

const CIFAR_10: Published = Published {
    base: "https://www.cs.toronto.edu/~kriz",
    files: &[("cifar-10-binary.tar.gz", "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd")],
};

const CIFAR_100: Published = Published {
    base: "https://www.cs.toronto.edu/~kriz",
    files: &[("cifar-100-binary.tar.gz", "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec")],
};

impl Published {
    fn fetch(&self, folder: &Path, options: &Download) -> Result<()> {
        for (name, sum) in self.files {
            let url = format!("{}/{name}", self.base);
            download(&url, folder.join(name), Some(sum), options)?;
        }
        Ok(())
    }
}

macro_rules! downloads {
    ($($dataset:ident, $published:ident;)*) => {$(
        impl $dataset {
            /// Fetches the published files into `folder`, those that are not there yet.
            #[track_caller]
            pub fn download(folder: impl AsRef<Path>) -> Result<()> {
                $dataset::download_with(folder, &Download::default())
            }

            /// [`download`](Self::download) from a mirror, without a bar, or with other patience.
            #[track_caller]
            pub fn download_with(folder: impl AsRef<Path>, options: &Download) -> Result<()> {
                let _call = Call::enter(concat!(stringify!($dataset), "::download"));
                $published.fetch(folder.as_ref(), options)
            }
        }
    )*};
}
downloads! {
    Mnist, MNIST;
    FashionMnist, FASHION_MNIST;
    Cifar10, CIFAR_10;
    Cifar100, CIFAR_100;
}
