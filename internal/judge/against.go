package judge

import (
	"errors"
	"slices"

	"carronade/internal/store"
)

// A Baseline is the reports with which the newest are compared instead of with
// their history.
type Baseline struct {
	Name string // as requested
	Rows []store.Row
}

// ErrNoBaseline is the error if the baseline has no workload in common with the
// newest reports.
var ErrNoBaseline = errors.New("no other report is of a workload and system of the baseline, measured after it")

// against verifies the newest revision of each workload of the baseline. Workloads
// that the baseline lacks are not judged.
func (v *Verification) against(rows []store.Row, o VerifyOptions) error {
	base := o.Against.Rows
	v.Against = o.Against.Name
	if o.SameSystem {
		base = asOneSystem(base)
	}
	isBase := func(r store.Row) bool {
		return slices.ContainsFunc(base, func(b store.Row) bool { return b.ID == r.ID })
	}
	rows = slices.DeleteFunc(slices.Clone(rows), isBase)
	found := bundlesWithUnfit(rows, notHistory, o.Untrusted)
	for _, b := range bundlesWithUnfit(base, store.OfRevision, o.Untrusted) {
		matched := false
		for _, c := range found {
			if !sameWorkloadAs(&b, &c) || !measuredAfter(c.rows, b.rows) {
				continue
			}
			if g, ok := gate(c, b.rows, o); ok {
				v.Groups, matched = append(v.Groups, g), true
			}
		}
		if !matched {
			v.Missing = append(v.Missing, Unpaired{"baseline", systemOf(&b.rows[0]), orEmpty(b.settings), ids(b.rows)})
		}
	}
	if len(v.Groups) == 0 {
		return ErrNoBaseline
	}
	v.LeftOut = []LeftOut{} // not those of revisions that are not compared
	for _, g := range v.Groups {
		v.LeftOut = append(v.LeftOut, g.LeftOut...)
	}
	return nil
}

// measuredAfter is whether the newest of some reports was made after the first of a
// baseline. Reports that are all older cannot be the candidate.
func measuredAfter(rows, baseline []store.Row) bool {
	newest := slices.MaxFunc(rows, func(a, b store.Row) int { return a.At.Compare(b.At) })
	first := slices.MinFunc(baseline, func(a, b store.Row) int { return a.At.Compare(b.At) })
	return newest.At.After(first.At)
}

// sameWorkloadAs is whether two bundles are of one workload and system, of any
// revision and branch.
func sameWorkloadAs(a, b *bundle) bool {
	r, other := &a.rows[0], &b.rows[0]
	return key(r, store.OfRevision) == key(other, store.OfRevision) || sameVariables(r, other, store.OfRevision)
}

// ofBaseline is whose runs are compared with the newest.
const ofBaseline = "of the baseline"

// newestAgainst are a history of a baseline and the newest revision, and its rows.
func newestAgainst(baseline []store.Row, newest revision, untrusted bool) (history []revision, rows []store.Row) {
	newest.earlier = nil
	rows = slices.Concat(newest.rows, newest.out)
	slices.SortStableFunc(rows, byTime)
	return []revision{baselineOf(baseline, untrusted), newest}, append(rows, baseline...)
}

// baselineOf is the baseline in the place of a history.
func baselineOf(rows []store.Row, untrusted bool) revision {
	v := revision{name: revisionName(&rows[0]), date: rows[0].At}
	for _, r := range rows {
		if revisionName(&r) != v.name {
			v.name = ""
		}
		if unfit(&r, untrusted) == "" {
			v.rows = append(v.rows, r)
		} else {
			v.out = append(v.out, r)
		}
	}
	return v
}
