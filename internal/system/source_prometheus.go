package system

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// prometheus reads the text format 0.0.4 of Prometheus, and what OpenMetrics has in
// common with it: "# TYPE NAME KIND", and samples "NAME{LABELS} VALUE [TIME]". It
// skips other lines. An answer without any sample is an error. NaN and infinite
// values are left out.
func prometheus(f filter) sourceFormat {
	return func(body []byte, collect func(string, float64, bool)) error {
		family, kind := "", ""
		samples, lines := 0, 0
		for line := range strings.Lines(string(body)) {
			line = strings.TrimSpace(line)
			if line == "" {
				continue
			}
			lines++
			if line[0] == '#' {
				if w := strings.Fields(line); len(w) == 4 && w[1] == "TYPE" {
					family, kind = w[2], w[3]
				}
				continue
			}
			name, rest, ok := series(line)
			if !ok {
				continue
			}
			text, _, _ := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				continue
			}
			samples++
			if math.IsNaN(value) || math.IsInf(value, 0) {
				continue
			}
			bare, _, _ := strings.Cut(name, "{")
			part, in := strings.CutPrefix(bare, family)
			counter := false
			switch {
			case !in || family == "":
			case kind == "counter":
				counter = part == "" || part == "_total"
			case kind == "histogram" || kind == "summary":
				counter = part == "_sum" || part == "_count" || part == "_bucket"
				if part == "_bucket" || part == "" && strings.Contains(name, `quantile="`) {
					if !f.includes(name) {
						continue
					}
				}
			}
			if strings.HasSuffix(bare, "_created") && kind != "gauge" {
				continue // the start time of a counter, in OpenMetrics
			}
			collect(name, value, counter)
		}
		if samples == 0 && lines > 0 {
			return errors.New("its answer contains no metrics in Prometheus's text format")
		}
		return nil
	}
}

// series splits a sample's name and labels from the rest. A label's value is
// quoted, and may contain anything, with a backslash before quotes.
func series(line string) (name, rest string, ok bool) {
	i := 0
	for i < len(line) && nameByte(line[i]) {
		i++
	}
	if i == 0 || i == len(line) {
		return "", "", false
	}
	if line[i] == ' ' || line[i] == '\t' {
		return line[:i], line[i:], true
	}
	if line[i] != '{' {
		return "", "", false
	}
	quoted := false
	for j := i + 1; j < len(line); j++ {
		switch c := line[j]; {
		case quoted && c == '\\':
			j++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			labels := strings.TrimSuffix(line[i+1:j], ",")
			if labels == "" {
				return line[:i], line[j+1:], true
			}
			return line[:i] + "{" + labels + "}", line[j+1:], true
		}
	}
	return "", "", false
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == ':'
}
