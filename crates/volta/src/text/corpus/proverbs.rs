//! The text of `short`: sayings made up for this program, small enough to learn by heart.

pub(super) const TEXT: &str = "\
The river runs to the sea, and the sea sends rain to the river.
A slow walk reaches the hill before a fast stop.
Whoever plants a tree lends shade to a stranger.
The lamp does not ask who reads by it.
Two hands carry one basket; one hand carries half.
A quiet wind moves the ship, a loud wind moves the sail.
The bread that is shared is never stale.
When the well is deep, bring a long rope.
The fox counts the hens, but the farmer counts the foxes.
An old road knows many feet.
Who listens twice speaks once, and is heard.
The stone that is in the way is also a step.
A small key opens a large door.
The moon borrows its light and lends it to the night.
Do not sell the wool before the sheep comes home.
A torn net catches no fish, and a mended net catches two.
The bridge is built from both sides.
A word is a seed; it grows where it falls.
The clock that is wrong is sure of itself.
Rain on the roof is music to those who are dry.
The first step is short, the last step is proud.
He who hides the map must walk the longest way.
A friend is a coat that winter cannot wear out.
The candle is small, but the dark is afraid of it.
The mill does not grind with the water that has passed.
A basket of plans weighs less than one apple.
The owl is not wise because of the night; the night is kind to the owl.
Count the stars, and you will sleep before you are wrong.
The gate is open to those who push.
A good question is half of the road.
The baker smells the bread last.
The boat that stays in the harbour learns the harbour, the boat that leaves learns the sea.
An honest scale has no favourite side.
The tallest tree was once the smallest seed.
Where the path ends, the walker begins.
The snow that falls at night is the work of the morning.
The river does not drink its water, and the tree does not eat its apples.
A friend with a rope is worth two friends with advice.
The night is long for the one who counts it, and short for the one who sleeps.
The road home is always known to the feet.
";
