//! Sentence vectors are those of `transformers`.

use super::files::{answers, distance, fixture, floats, numbers};
use volta::models::{Embedder, Pooling};
use volta_testing::test;

#[test]
fn sentences_have_the_vectors_of_the_oracle() {
    let embedder = Embedder::load(fixture("bert")).unwrap();
    let rows = answers("bert");
    let rows = rows.as_array().unwrap();
    let texts: Vec<&str> = rows.iter().map(|row| row["text"].as_str().unwrap()).collect();
    // All at once: short ones are filled up, and the filling changes nothing.
    let found = embedder.embed(&texts).unwrap();
    for (row, vector) in rows.iter().zip(&found) {
        assert_eq!(embedder.tokens(row["text"].as_str().unwrap()).unwrap(), numbers(&row["ids"]));
        let apart = distance(vector, &floats(&row["mean"]));
        assert!(apart < 1e-5, "{}: {apart}", row["text"]);
    }
    let alone = embedder.embed(&texts[1..2]).unwrap();
    assert!(distance(&alone[0], &found[1]) < 1e-5);
}

#[test]
fn the_first_token_may_stand_for_a_sentence() {
    let mut embedder = Embedder::load(fixture("bert")).unwrap();
    embedder.pooling = Pooling::First;
    embedder.normalized = false;
    let rows = answers("bert");
    let row = &rows[0];
    let found = embedder.embed(&[row["text"].as_str().unwrap()]).unwrap();
    assert!(distance(&found[0], &floats(&row["cls"])) < 1e-5);
}

#[test]
fn no_sentences_have_no_vectors() {
    let embedder = Embedder::load(fixture("bert")).unwrap();
    assert!(embedder.embed(&[]).unwrap().is_empty());
    assert_eq!(embedder.embed(&[""]).unwrap()[0].len(), 32);
}
