// Package trials joins searches and reports. It makes the outcome of a trial from the trial's
// report, the report of a search from its answer, and the answer to other limits from stored
// trials. Package find knows no reports, so that a report can have an answer in it.
package trials
