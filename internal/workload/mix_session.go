package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
)

// Open implements protocol.Kind: it opens all parts, and makes one target of them.
func (k mixKind) Open(ctx context.Context, whole protocol.Spec) (protocol.Session, error) {
	s := &mixSession{parts: k.parts}
	var parts []load.Part
	for i := range k.parts {
		p := &k.parts[i]
		spec, err := p.spec(k.parts, &whole)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		own, err := p.Workload.Kind.Open(ctx, spec)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("part %s: %w", p.Name, err), s.Close())
		}
		s.of, s.can = append(s.of, own), append(s.can, own.Capabilities())
		part := load.Part{Name: p.Name, Weight: p.Weight, Target: own.Target()}
		if p.Paced {
			if part.Schedule, _, err = p.Workload.schedule(); err != nil {
				return nil, errors.Join(err, s.Close())
			}
		}
		if n := part.Target.Capabilities().Events; n > 0 {
			part.Gate = load.NewGate()
			part.Gate.Add(n)
			part.Gate.Close()
		}
		parts = append(parts, part)
	}
	var err error
	if s.mix, err = load.NewMix(parts); err != nil {
		return nil, errors.Join(&protocol.Error{Doing: "join the parts", Err: err, Hint: "a part cannot use a client library (--engine client)"}, s.Close())
	}
	return s, nil
}

// A mixSession has the sessions of all parts.
type mixSession struct {
	parts []Part
	of    []protocol.Session // those that are open
	can   []protocol.SessionCapabilities
	mix   *load.Mix
}

// Target implements protocol.Session.
func (s *mixSession) Target() load.Target { return s.mix }

// Source implements protocol.Session.
func (s *mixSession) Source() load.Source { return nil }

// Facts implements protocol.Session.
func (s *mixSession) Facts() map[string]any {
	discards := true
	parts := make(map[string]any, len(s.of))
	for i, of := range s.of {
		f := of.Facts()
		parts[s.parts[i].Name] = f
		if d, _ := f["discards"].(bool); !d && s.parts[i].Workload.Kind.Name() != "null" {
			discards = false
		}
	}
	f := map[string]any{"parts": parts}
	if discards {
		f["discards"] = true
	}
	return f
}

// Warnings implements protocol.Session.
func (s *mixSession) Warnings() []string {
	var out []string
	for i, of := range s.of {
		for _, text := range of.Warnings() {
			out = append(out, s.parts[i].Name+": "+text)
		}
	}
	return out
}

// Close implements protocol.Session.
func (s *mixSession) Close() error {
	var errs []error
	for _, of := range s.of {
		errs = append(errs, of.Close())
	}
	return errors.Join(errs...)
}

// Capabilities implements protocol.Session. What fitsMix and load.NewMix refuse to parts is not
// there: pipelines, transactions, and counting in an index. Of the rest, a mix can what any part can.
func (s *mixSession) Capabilities() protocol.SessionCapabilities {
	c := protocol.SessionCapabilities{Unanswered: s.can[0].Unanswered} // all parts are, or none is
	encoding := 0
	for i := range s.can {
		of := &s.can[i]
		if of.Encoding != nil {
			encoding++
		}
		if of.Brokers != nil {
			c.Brokers = s.brokers
		}
		if of.Figures != nil {
			c.Figures = s.figures
		}
		if of.Survey != nil {
			c.Survey = s.survey
		}
		if of.Leader != nil && c.Leader == nil {
			c.Leader = of.Leader // faults name no part
		}
		if of.Finish != nil {
			c.Finish = s.finish
		}
		if of.Notice != nil {
			c.Notice = s.notice
		}
	}
	if encoding == len(s.can) {
		c.Encoding = s.encoding
	}
	return c
}

func (s *mixSession) survey(ctx context.Context) error {
	var errs []error
	for i := range s.can {
		if of := s.can[i].Survey; of != nil {
			errs = append(errs, of(ctx))
		}
	}
	return errors.Join(errs...)
}

func (s *mixSession) finish() error {
	var errs []error
	for i := range s.can {
		if of := s.can[i].Finish; of != nil {
			errs = append(errs, of())
		}
	}
	return errors.Join(errs...)
}

func (s *mixSession) notice() string {
	var out []string
	for i := range s.can {
		if of := s.can[i].Notice; of != nil {
			if text := of(); text != "" {
				out = append(out, s.parts[i].Name+": "+text)
			}
		}
	}
	return strings.Join(out, "; ")
}

func (s *mixSession) brokers() []measure.Client {
	var out []measure.Client
	for i := range s.can {
		if of := s.can[i].Brokers; of != nil {
			for _, c := range of() {
				c.Broker = s.parts[i].Name + ": " + c.Broker
				out = append(out, c)
			}
		}
	}
	return out
}

// figures are those of the first part for each target: parts of one system have the same.
func (s *mixSession) figures(ctx context.Context) ([]measure.Figure, error) {
	var (
		out  []measure.Figure
		errs []error
		seen = make(map[string]bool)
	)
	for i := range s.can {
		of := s.can[i].Figures
		if where := s.parts[i].Workload.URL.Host; of != nil && !seen[where] {
			seen[where] = true
			figures, err := of(ctx)
			out, errs = append(out, figures...), append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

// encoding is what all parts have in common. Events are encoded as they are sent if those of a
// part are.
func (s *mixSession) encoding() *measure.Encoding {
	var all *measure.Encoding
	for i := range s.can {
		own := s.can[i].Encoding()
		switch {
		case own == nil: // it sends nothing
		case all == nil:
			copied := *own
			all = &copied
		default:
			all.Join(own)
		}
	}
	return all
}
