package judge

import (
	"math"

	"carronade/internal/store"
)

// A VariedSearch is a repetition of a cell in a series of searches: the ceiling of the cell,
// between Holds and Fails.
type VariedSearch struct {
	ID     string  `json:"id"`
	Report string  `json:"report"` // of a trial at the lower end
	Holds  float64 `json:"holds"`  // events a second
	Fails  float64 `json:"fails"`

	Cell, Round int    `json:"-"` // both from 0
	Why         string `json:"-"` // why it does not count; "": it does
	Died        bool   `json:"-"` // the system did not survive it
}

// middle is the middle of the interval, as ratios go.
func (s *VariedSearch) middle() float64 { return math.Sqrt(s.Holds * s.Fails) }

// error is the standard deviation of the middle if the ceiling may be anywhere in the interval.
func (s *VariedSearch) error() float64 { return math.Log(s.Fails/s.Holds) / math.Sqrt(12) }

// fitSearches are the rows of the lower ends of searches, which are among the rows of all trials,
// with the ceilings. at gets them by cell and round.
func (v *Variation) fitSearches(rows []store.Row, searches []VariedSearch, at [][]*store.Row) (good []store.Row) {
	byID := make(map[string]*store.Row, len(rows))
	for i := range rows {
		byID[rows[i].ID] = &rows[i]
	}
	good = make([]store.Row, 0, len(searches)) // at points into it
	squares := 0.0
	for _, s := range searches {
		c := &v.Cells[s.Cell]
		if s.Died {
			c.Died++
		}
		trial := byID[s.Report]
		if s.Why == "" && trial == nil {
			s.Why = "the report of its lower end, " + s.Report + ", is not in the store"
		}
		if s.Why != "" {
			v.LeftOut = append(v.LeftOut, LeftOut{s.ID, s.Why})
			continue
		}
		r := *trial
		r.Fields = with(r.Fields, store.Field{Name: ceiling.field, Value: store.Value{Kind: store.KindRate, Num: s.middle()}})
		good = append(good, r)
		at[s.Cell][s.Round] = &good[len(good)-1]
		c.Searches = append(c.Searches, s)
		squares += s.error() * s.error()
	}
	if len(good) > 0 {
		v.least = math.Sqrt(squares / float64(len(good)))
	}
	return good
}

// searchedQuantities are the numbers of a series of searches: the ceiling, and what a trial at its
// lower end measured.
func searchedQuantities(rows []store.Row) []quantity {
	var out []quantity
	for _, q := range variedQuantities(rows) {
		switch q.field {
		case throughput.field: // it is the rate
			continue
		case ceiling.field:
		default:
			q.title += " at the lower end"
		}
		out = append(out, q)
	}
	return out
}
