//! Einstein's summation.

use crate::reference::Array;
use crate::table::*;
use volta::Tensor;
use volta_testing::test;

/// By looping over every label of the equation; an operand's extent of 1 stands for any.
fn einsum(equation: &str, x: &[Array]) -> Array {
    let (inputs, output) = equation.split_once("->").expect("an arrow");
    let inputs: Vec<Vec<char>> = inputs.split(',').map(|s| s.chars().collect()).collect();
    let output: Vec<char> = output.chars().collect();
    let mut labels = output.clone();
    labels.extend(inputs.iter().flatten().filter(|c| !output.contains(c)));
    labels.dedup();
    let mut unique: Vec<char> = vec![];
    for l in labels {
        if !unique.contains(&l) {
            unique.push(l);
        }
    }
    let extent = |l: char| {
        let all = inputs.iter().zip(x).flat_map(|(names, x)| names.iter().zip(&x.shape));
        all.filter(|(n, _)| **n == l).map(|(_, &e)| e).find(|&e| e != 1).unwrap_or(1)
    };
    let sizes: Vec<usize> = unique.iter().map(|&l| extent(l)).collect();
    let mut out = Array::full(&sizes[..output.len()], 0.0);
    Array::from_fn(&sizes, |at| {
        let place = |l: char| at[unique.iter().position(|&u| u == l).expect("a label")];
        let mut product = 1.0;
        for (names, x) in inputs.iter().zip(x) {
            let own: Vec<usize> =
                names.iter().zip(&x.shape).map(|(&l, &e)| if e == 1 { 0 } else { place(l) }).collect();
            product *= x.at(&own);
        }
        *out.at_mut(&at[..output.len()]) += product;
        0.0
    });
    out
}

fn rows() -> Vec<Row> {
    // The equation, the same with every axis named, and shapes.
    let table: &[(&str, &str, &[&[&[usize]]])] = &[
        ("ij,jk->ik", "ij,jk->ik", &[&[&[3, 4], &[4, 2]], &[&[3, 0], &[0, 2]], &[&[20, 33], &[33, 17]]]),
        ("ij,jk->ki", "ij,jk->ki", &[&[&[3, 4], &[4, 2]]]),
        ("ij,jk", "ij,jk->ik", &[&[&[3, 4], &[4, 2]]]),
        ("ba,ac", "ba,ac->bc", &[&[&[3, 4], &[4, 2]]]),
        ("bij,bjk->bik", "bij,bjk->bik", &[&[&[2, 3, 4], &[2, 4, 2]]]),
        ("bhqd,bhkd->bhqk", "bhqd,bhkd->bhqk", &[&[&[2, 2, 3, 4], &[2, 2, 5, 4]]]),
        ("i,j->ij", "i,j->ij", &[&[&[3], &[4]]]),
        ("i,i->", "i,i->", &[&[&[5], &[5]]]),
        ("i,i->i", "i,i->i", &[&[&[5], &[5]]]),
        ("ij->ji", "ij->ji", &[&[&[3, 4]]]),
        ("ij->", "ij->", &[&[&[3, 4]]]),
        ("ij->j", "ij->j", &[&[&[3, 4]]]),
        ("ba", "ba->ab", &[&[&[3, 4]]]),
        ("ii->i", "ii->i", &[&[&[4, 4]]]),
        ("ii", "ii->", &[&[&[4, 4]]]),
        ("bii->b", "bii->b", &[&[&[2, 3, 3]]]),
        ("iij,j->i", "iij,j->i", &[&[&[3, 3, 2], &[2]]]),
        ("...ij,...jk->...ik", "xyij,yjk->xyik", &[&[&[2, 3, 2, 4], &[3, 4, 2]]]),
        ("...i,i->...", "xyi,i->xy", &[&[&[2, 3, 4], &[4]]]),
        ("b...->...b", "bxy->xyb", &[&[&[2, 3, 4]]]),
        ("i...,i...->i", "ix,ix->i", &[&[&[3, 4], &[3, 4]], &[&[3, 1], &[3, 4]]]),
        ("ij,ij->ij with an extent of 1", "ij,ij->ij", &[&[&[3, 1], &[3, 4]]]),
        ("ij,jk,kl->il", "ij,jk,kl->il", &[&[&[2, 3], &[3, 4], &[4, 2]]]),
        ("ij,ik,il->jkl", "ij,ik,il->jkl", &[&[&[2, 3], &[2, 2], &[2, 4]]]),
        ("ij,kl->", "ij,kl->", &[&[&[2, 3], &[3, 2]]]),
        (" i j , j -> i ", "ij,j->i", &[&[&[2, 3], &[3]]]),
        ("abc,cd->abd", "abc,cd->abd", &[&[&[2, 3, 4], &[4, 5]]]),
        (",i->i", ",i->i", &[&[&[], &[3]]]),
    ];
    table
        .iter()
        .map(|&(equation, full, cases)| {
            let written = equation.split(" with").next().expect("the equation");
            row(equation, move |x| Tensor::einsum(written, x), move |x| einsum(full, x))
                .cases(cases)
                .slack(16.0)
        })
        .collect()
}

checks!(rows());
