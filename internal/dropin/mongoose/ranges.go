package mongoose

import (
	"fmt"
	"time"
)

// minimums are the smallest possible values of options. A smaller value is refused,
// because it would be ignored otherwise.
var minimums = map[string]int64{
	"load-op-timeoutMillis":                      1,
	"output-metrics-average-table-header-period": 1,
	"storage-driver-batch-size":                  1,
	"storage-driver-buffer-memory":               1,
	"storage-driver-request-size":                1,
	"storage-driver-threads":                     0,
	"storage-net-linger":                         0,
	"storage-net-rcvBuf":                         -1,
	"storage-net-sndBuf":                         -1,
}

// checkRanges checks given numbers that have an effect on the work.
func (s *step) checkRanges(time.Time) error {
	for i := range options {
		o := &options[i]
		if !s.v.has(o.name) || !s.works(o) {
			continue
		}
		least, bound := minimums[o.name]
		n := s.v.number(o.name)
		switch {
		case bound && n < least:
			return fmt.Errorf("--%s: %d is below %d", o.name, n, least)
		case bound && least < 0 && n == 0: // a buffer size
			return fmt.Errorf("--%s: 0 is not a size: -1 is the system's default", o.name)
		}
	}
	if n, err := s.v.size("item-data-input-layer-size"); err != nil {
		return err
	} else if n == 0 {
		return fmt.Errorf("--item-data-input-layer-size: %q holds no record", s.v.text("item-data-input-layer-size"))
	}
	return nil
}
