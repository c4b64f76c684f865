package mongoose

import (
	"fmt"
	"math"
	"strconv"

	"carronade/payload"
)

// ring is the setting for values: pieces of mongoose's ring of data. The text between is an
// expression for where a value begins, or says which value is that of a record.
func (s *step) ring(between string) string {
	n, _ := parseSize(s.v.text("item-data-input-layer-size")) // checked
	source := s.v.text("item-data-input-seed")
	if file := s.v.text("item-data-input-file"); file != "" {
		source = "file:" + file
	}
	if between != "" {
		between += ","
	}
	return fmt.Sprintf("ring(%d,%s%s)", n, between, source)
}

// dataOption is the option that says what values are.
func (s *step) dataOption() string {
	if s.v.text("item-data-input-file") != "" {
		return "--item-data-input-file"
	}
	return "--item-data-input-seed"
}

// verifies reports whether the values that are read are compared with those that were sent.
func (s *step) verifies() bool { return s.work == readRecords && s.v.flag("item-data-verify") }

// check is the setting for what values must be: those of the list if it has places, else those
// that keys name if records have keys, else any piece of the ring.
func (s *step) check() string {
	switch {
	case s.places != "":
		return s.ring("list(" + s.v.text("item-input-file") + ")")
	case s.keyed && mustParse(s.prefixText()).Constant():
		return s.ring(fmt.Sprintf("names(%d,%s)", s.v.number("item-naming-radix"), mustParse(s.prefixText()).Append(nil, 0)))
	}
	return s.ring("")
}

// dataSeed is the seed of a run with records of different sizes.
func (s *step) dataSeed() uint64 { return uint64(s.namingSeed) & math.MaxInt64 }

// sizes has the sizes of records, if they differ; nil if all have the same. A row of a record
// that was sent with others has their mean size.
func (s *step) sizes() *payload.Generator {
	if s.high <= s.low {
		return nil
	}
	g, err := payload.New(payload.Spec{Seed: s.dataSeed(), Size: s.sizeText()})
	if err != nil {
		return nil // the run has failed for the same reason
	}
	return g
}

// sizeText is the setting for sizes.
func (s *step) sizeText() string {
	if s.high > s.low {
		return fmt.Sprintf("%d-%d", s.low, s.high)
	}
	return strconv.FormatInt(s.low, 10)
}

// streams is the number of streams among which a run divides its records, by the facts about the
// system.
func (s *step) streams(facts map[string]any) int {
	partitions := 1
	if topic, ok := facts["topic"].(map[string]any); ok {
		if n, ok := topic["partitions"].(int); ok {
			partitions = n
		}
	}
	return partitions * max(1, int(s.v.number("storage-driver-threads")))
}
