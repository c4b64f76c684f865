package heyapm

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"carronade/internal/apm/wire"
)

// body makes a request's body, and returns its size after compression.
func (w *heyWork) body() (plain []byte, gzipped int, counts wire.Counts, err error) {
	protocol, err := wire.ParseProtocol(w.intake)
	if err != nil {
		return nil, 0, counts, err
	}
	m := wire.Makeup{
		Protocol: protocol,
		Events:   wire.Range{Min: w.events, Max: w.events},
		Spans:    wire.Range{Min: w.spans, Max: w.spans},
		Frames:   wire.Range{Min: w.frames, Max: w.frames},
	}
	if w.sized {
		m.FrameBytes, m.EventBytes = heyFrameBytes, heyEventBytes
	}
	maker, err := wire.NewMaker(m, 1)
	if err != nil {
		return nil, 0, counts, err
	}
	b := maker.Make(0)
	z, err := b.GzipFixed(6)
	if err != nil {
		return nil, 0, counts, err
	}
	return b.Bytes, len(z.Bytes), b.Counts, nil
}

// describeAll prints what requests contain, and sends nothing.
func (t *heyLegacy) describeAll(all []heyWork) (int, error) {
	for i := range all {
		w := &all[i]
		if !w.isSent() {
			fmt.Fprintf(t.p.Out, "GET %s - 0 (0 gz) bytes\n", w.url)
			continue
		}
		plain, gzipped, counts, err := w.body()
		if err != nil {
			return 1, err
		}
		fmt.Fprintf(t.p.Out, "POST %s - %d (%d gz) bytes", w.url, len(plain), gzipped)
		if n := counts[wire.Transaction]; n > 0 {
			fmt.Fprintf(t.p.Out, " - %d transactions with spans of length: %s", n, strings.Repeat(fmt.Sprintf("%d ", w.spans), n))
		}
		fmt.Fprintln(t.p.Out)
	}
	return 0, nil
}

// dumpAll writes the profile as loadbeat's configuration.
func (t *heyLegacy) dumpAll(all []heyWork) (int, error) {
	var b bytes.Buffer
	fmt.Fprintln(&b, "loadbeat:")
	fmt.Fprintln(&b, "  targets:")
	for i := range all {
		w := &all[i]
		method := "POST"
		if !w.isSent() {
			method = "GET"
		}
		fmt.Fprintf(&b, "    - concurrent: %d\n", w.concurrency)
		fmt.Fprintf(&b, "      qps: %.5f\n", w.perS)
		fmt.Fprintf(&b, "      method: %s\n", method)
		fmt.Fprintf(&b, "      url: %s\n", w.url)
		if w.isSent() {
			plain, _, _, err := w.body()
			if err != nil {
				return 1, err
			}
			kind, block := "application/json", ">"
			if w.intake != "v1" { // a document per line: keep the line breaks
				kind, block = "application/x-ndjson", "|"
			}
			plain = bytes.ReplaceAll(bytes.TrimRight(plain, "\n"), []byte("\n"), []byte("\n        "))
			fmt.Fprintf(&b, "      headers:\n        - Content-Type:%s\n      body: %s\n        %s\n", kind, block, plain)
		}
		fmt.Fprintln(&b)
	}
	name := t.profile + ".yml"
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		return 1, fmt.Errorf("-dump: %w", err)
	}
	return 0, nil
}
