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
		s.of = append(s.of, own)
		part := load.Part{Name: p.Name, Weight: p.Weight, Target: own.Target()}
		if p.Paced {
			if part.Schedule, _, err = p.Workload.schedule(); err != nil {
				return nil, errors.Join(err, s.Close())
			}
		}
		if f, ok := part.Target.(protocol.Finite); ok && f.Events() > 0 {
			part.Gate = load.NewGate()
			part.Gate.Add(f.Events())
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

// Unanswered implements protocol.Unanswered: all parts are, or none is.
func (s *mixSession) Unanswered() bool {
	u, ok := s.of[0].(protocol.Unanswered)
	return ok && u.Unanswered()
}

// Survey implements protocol.Surveyor.
func (s *mixSession) Survey(ctx context.Context) error {
	var errs []error
	for _, of := range s.of {
		if v, ok := of.(protocol.Surveyor); ok {
			errs = append(errs, v.Survey(ctx))
		}
	}
	return errors.Join(errs...)
}

// Finish implements protocol.Finisher.
func (s *mixSession) Finish() error {
	var errs []error
	for _, of := range s.of {
		if f, ok := of.(protocol.Finisher); ok {
			errs = append(errs, f.Finish())
		}
	}
	return errors.Join(errs...)
}

// Notice implements protocol.Noticer.
func (s *mixSession) Notice() string {
	var out []string
	for i, of := range s.of {
		if n, ok := of.(protocol.Noticer); ok && n.Notice() != "" {
			out = append(out, s.parts[i].Name+": "+n.Notice())
		}
	}
	return strings.Join(out, "; ")
}

// Brokers implements protocol.Metered.
func (s *mixSession) Brokers() []measure.Client {
	var out []measure.Client
	for i, of := range s.of {
		if m, ok := of.(protocol.Metered); ok {
			for _, c := range m.Brokers() {
				c.Broker = s.parts[i].Name + ": " + c.Broker
				out = append(out, c)
			}
		}
	}
	return out
}

// Figures implements protocol.FigureSource. Parts of one system have the same figures: those of
// the first part for each target count.
func (s *mixSession) Figures(ctx context.Context) ([]measure.Figure, error) {
	var (
		out  []measure.Figure
		errs []error
		seen = make(map[string]bool)
	)
	for i, of := range s.of {
		f, ok := of.(protocol.FigureSource)
		if where := s.parts[i].Workload.URL.Host; ok && !seen[where] {
			seen[where] = true
			figures, err := f.Figures(ctx)
			out, errs = append(out, figures...), append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

// Leader implements protocol.Leading: the first part that has leaders knows them, since faults name
// no part.
func (s *mixSession) Leader(ctx context.Context, partition int) (addr string, err error) {
	for _, of := range s.of {
		if l, ok := of.(protocol.Leading); ok {
			return l.Leader(ctx, partition)
		}
	}
	return "", errors.New("no part of the mix has leaders")
}

// Encoding implements protocol.Encoded: what all parts have in common. Events are encoded as they
// are sent if those of a part are.
func (s *mixSession) Encoding() *measure.Encoding {
	var all *measure.Encoding
	for _, of := range s.of {
		e, ok := of.(protocol.Encoded)
		if !ok {
			return nil
		}
		own := e.Encoding()
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
