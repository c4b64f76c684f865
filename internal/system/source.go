package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"carronade/internal/conn"
	"carronade/internal/secret"
	"carronade/measure"
)

// The bounds of one source.
const (
	mostSourceBytes   = 8 << 20 // of one answer
	mostSourceFigures = 200     // reported at once
	sourceTimeout     = 5 * time.Second
)

// A sourceFormat reads a source's answer: it calls collect for each number that it finds,
// and returns an error for an answer in another format.
type sourceFormat func(body []byte, collect func(name string, value float64, counter bool)) error

// A source reads figures from one URL. It belongs to one goroutine.
type source struct {
	url      string
	shown    string // without a login
	header   http.Header
	mask     *secret.Mask
	read     sourceFormat
	accept   string
	filter   filter
	client   *http.Client
	body     []byte
	before   map[string]float64 // counters at the last request
	at       time.Time
	now      func() time.Time
	requests int
	failures int
	last     error // of the latest request that failed
	dropped  int   // the most figures beyond mostSourceFigures in one answer

	stages []stage // what it counts of a run's events
}

// A stage is a measure.Stage with its count.
type stage struct {
	measure.Stage
	seen        bool
	last, count float64 // the sum of its counters at the last request, and what came since the first one
}

// add notes the sum of its counters now. They begin again at 0 when the system restarts.
func (s *stage) add(sum float64, first bool) {
	if sum < s.last {
		s.last = 0
	}
	if !first {
		s.count += sum - s.last
	}
	s.last = sum
}

// expvarSource makes a source for expvar: one JSON object, whose numbers are reported by
// their path, such as "memstats.HeapAlloc". Numbers in lists are left out. expvar
// does not say which numbers are counters, so all are reported unchanged.
func expvarSource(address string, header http.Header, f filter) (*source, error) {
	return newSource(address, header, f, expvar, "application/json")
}

// prometheusSource makes a source for Prometheus's text format 0.0.4, which the exporters
// for JMX also use. Gauges are reported unchanged. Counters, and the sums and counts
// of histograms and summaries, are reported as their rate since the last request,
// from the second one on. Buckets and quantiles are reported only if the filter
// includes them by name.
func prometheusSource(address string, header http.Header, f filter) (*source, error) {
	return newSource(address, header, f, prometheus(f), "text/plain;version=0.0.4, text/plain;q=0.5, */*;q=0.1")
}

func newSource(address string, header http.Header, f filter, read sourceFormat, accept string) (*source, error) {
	u, err := url.Parse(address)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		err = errors.New("want http://HOST:PORT/PATH")
	}
	s := &source{
		url: address, header: header, mask: new(secret.Mask), read: read, accept: accept, filter: f, now: time.Now,
		before: make(map[string]float64), body: make([]byte, 0, 64<<10),
		client: conn.HTTPClient(&http.Transport{MaxIdleConns: 1, IdleConnTimeout: time.Minute, Proxy: nil}),
	}
	s.client.Timeout = sourceTimeout
	for _, values := range header {
		for _, v := range values {
			s.mask.Add(v)
			if _, bare, ok := strings.Cut(v, " "); ok {
				s.mask.Add(bare)
			}
		}
	}
	s.shown = s.mask.Text(address)
	if err != nil {
		return nil, fmt.Errorf("read the address %s: %s", s.shown, s.mask.Text(cause(err).Error()))
	}
	return s, nil
}

// URL is the source's URL, without a login.
func (s *source) URL() string { return s.shown }

// Figures requests the figures. An error contains the URL, but never a secret.
func (s *source) Figures(ctx context.Context) ([]measure.Figure, error) {
	s.requests++
	first := s.at.IsZero()
	out, err := s.collect(ctx)
	if err != nil {
		if first { // what its counters were before the run is not known
			s.stages = nil
		}
		s.failures++
		s.last = fmt.Errorf("ask %s: %s", s.shown, s.mask.Text(cause(err).Error()))
		return nil, s.last
	}
	return out, nil
}

// cause is an error of a URL or a request without the address, which may contain a login.
func cause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

func (s *source) collect(ctx context.Context) ([]measure.Figure, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range s.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
		if strings.EqualFold(name, "host") && len(values) > 0 {
			req.Host = values[0]
		}
	}
	req.Header.Set("Accept", s.accept)
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
		return nil, fmt.Errorf("it answered %s", res.Status)
	}
	if err := s.readAll(res.Body); err != nil {
		return nil, err
	}
	at := s.now()
	span := at.Sub(s.at).Seconds()
	first := s.at.IsZero()
	var out []measure.Figure
	dropped := 0
	sums := make([]float64, len(s.stages))
	err = s.read(s.body, func(name string, value float64, counter bool) {
		for i := range s.stages {
			if counter && matches(s.stages[i].Metrics, name) {
				sums[i] += value
				s.stages[i].seen = true
			}
		}
		if !s.filter.Selects(name) {
			return
		}
		f := measure.Figure{Name: name, Value: value}
		if counter {
			before, ok := s.before[name]
			if !ok && len(s.before) >= mostSourceFigures {
				dropped++
				return
			}
			s.before[name] = value
			if !ok || first || span <= 0 {
				return
			}
			if value < before {
				before = 0 // the system restarted
			}
			f.Unit, f.Value = "/s", (value-before)/span
		}
		if len(out) >= mostSourceFigures {
			dropped++
			return
		}
		out = append(out, f)
	})
	for i := range s.stages {
		t := &s.stages[i]
		if err == nil {
			t.add(sums[i], first)
		}
		if t.seen && err == nil {
			out = append(out, measure.Figure{Name: t.Name, Unit: "events", Value: t.count, Total: true, Stage: true})
		}
	}
	s.at = at
	s.dropped = max(s.dropped, dropped)
	return out, err
}

func (s *source) readAll(r io.Reader) error {
	s.body = s.body[:0]
	for {
		if len(s.body) > mostSourceBytes {
			return fmt.Errorf("its answer is larger than %d MiB", mostSourceBytes>>20)
		}
		s.body = slices.Grow(s.body, 1)
		n, err := r.Read(s.body[len(s.body):cap(s.body)])
		s.body = s.body[:len(s.body)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Warnings are for the user: failed requests, and figures left out.
func (s *source) Warnings() []string {
	var out []string
	if s.failures > 0 {
		out = append(out, fmt.Sprintf("%d of %d requests had no answer (%v): the series have gaps there", s.failures, s.requests, s.last))
	}
	if s.dropped > 0 {
		out = append(out, fmt.Sprintf("%s has %d metrics beyond the limit of %d: choose some with --system-names", s.shown, s.dropped, mostSourceFigures))
	}
	return out
}

// Close closes the source's connection.
func (s *source) Close() { s.client.CloseIdleConnections() }
