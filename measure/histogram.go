package measure

import "time"

type Histogram struct{ n uint64 }

func NewHistogram() *Histogram               { return &Histogram{} }
func (h *Histogram) Merge(o *Histogram)      {}
func (h *Histogram) Record(d time.Duration)  {}
