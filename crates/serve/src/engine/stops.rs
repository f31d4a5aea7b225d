//! Texts that end an answer, wherever the tokens' borders are.

/// A text up to the first of some stops; what may be the beginning of one is held back.
pub struct Stops {
    stops: Vec<String>,
    held: String,
}

impl Stops {
    pub fn new(stops: &[String]) -> Stops {
        Stops { stops: stops.iter().filter(|stop| !stop.is_empty()).cloned().collect(), held: String::new() }
    }

    /// The text that is sure now, and whether a stop came.
    pub fn push(&mut self, text: &str) -> (String, bool) {
        self.held.push_str(text);
        let found = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        if let Some(place) = found {
            self.held.truncate(place);
            return (std::mem::take(&mut self.held), true);
        }
        let begins = |rest: &str| self.stops.iter().any(|stop| stop.starts_with(rest));
        let sure = self.held.char_indices().map(|(at, _)| at).find(|&at| begins(&self.held[at..]));
        let held = self.held.split_off(sure.unwrap_or(self.held.len()));
        (std::mem::replace(&mut self.held, held), false)
    }

    /// What was held back.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::Stops;

    #[test]
    fn stops_are_found_across_parts_and_are_not_shown() {
        let text = "one\n\ntwo é END three";
        for (stops, expected) in [
            (&["END"][..], "one\n\ntwo é "),
            (&["\n\n", "END"], "one"),
            (&["END", "D t", "E"], "one\n\ntwo é "),
            (&["nothing", ""], text),
            (&["three!"], text),
            (&[], text),
        ] {
            for size in 1..6 {
                let mut found = Stops::new(&stops.iter().map(ToString::to_string).collect::<Vec<_>>());
                let (mut shown, mut ended) = (String::new(), false);
                let letters: Vec<char> = text.chars().collect();
                for part in letters.chunks(size) {
                    let (sure, ends) = found.push(&part.iter().collect::<String>());
                    shown += &sure;
                    ended = ends;
                    if ends {
                        break;
                    }
                }
                if !ended {
                    shown += &found.finish();
                }
                assert_eq!(shown, expected, "{stops:?} by {size}");
            }
        }
    }
}
