// Package explain finds what coincided with the incidents of a run: its stalls, its spikes of
// the 99th percentile, and its steps in throughput. Incidents and whatever was watched go in,
// findings with the chance of such a coincidence come out.
//
// The chance is that of shifting the incidents in time against what was watched, around the ends
// of the measurement: how many of many shifts make as many incidents coincide. That keeps the
// distances between incidents, and those between the values of a series, so that neither
// clusters nor slow changes look like an explanation (a circular shift, as in E. S. Edgington
// and P. Onghena, Randomization Tests, 2007). All causes and all incidents are shifted together,
// and the chance of a finding is that of the best of all of them under a shift, by the step-down
// procedure of P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing, 1993. So a
// result that names any cause which only coincides by chance is rare, whatever the number of
// causes tried.
//
// It does not know reports, storage or terminals, nor what a cause means. A coincidence is not a
// cause: two things with a third as their cause coincide.
//
// Invariant: a finding is named only if its chance, corrected for all that was tried, is at most
// MostChance; the same input gives the same result, to the bit.
package explain
