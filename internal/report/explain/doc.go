// Package explain finds what coincided with the incidents of a run: its stalls, its spikes of
// the 99th percentile, and its steps in throughput. Incidents and whatever was watched go in,
// findings with the chance of such a coincidence come out.
//
// The chance is that of shifting the incidents in time against what was watched, around the ends
// of the measurement: how many of many shifts make as many incidents coincide. That keeps the
// distances between incidents, and those between the values of a series, so that neither
// clusters nor slow changes look like an explanation (a circular shift, as in E. S. Edgington
// and P. Onghena, Randomization Tests, 2007). The incidents of a kind are shifted together against
// all causes, and the chance of a finding is that of the best of all causes under a shift, by the
// step-down procedure of P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing, 1993,
// times the number of kinds (Bonferroni). So a result that names any cause which only coincides by
// chance is rare, whatever the number of causes tried.
//
// One incident that coincides with one change can only be named if both are placed well: the chance
// is the error of their places as a share of the run. So steps of the rate, and those of series
// whose values are means, are placed within their interval. Where even that is not enough, the
// result says how long the run must be.
//
// The input is made from a report (input.go). That file knows which series follow the load, and so
// explain nothing, and which flag would watch what was not watched. The output is a document, an
// Explanation, and its text. The search between the two knows neither: it gets spans and values, and
// not what a cause means. A coincidence is not a cause: two things with a third as
// their cause coincide.
//
// Invariant: everything follows from the report alone. A finding is named only if its chance,
// corrected for all that was tried, is at most mostChance; the same report gives the same result,
// to the bit.
package explain
