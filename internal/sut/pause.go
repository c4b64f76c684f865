package sut

import (
	"context"
	"errors"
	"fmt"
)

// InContainer reports whether the system is a container of an engine, which can pause it.
func (s *System) InContainer() bool { return s.container != nil }

var errNoContainer = errors.New("the system is not in a container")

// Pause makes a container stand still, by its engine: also one whose processes are not known or may
// not be signalled.
func (s *System) Pause(ctx context.Context) error { return s.ask(ctx, "pause") }

// Unpause lets a container go on after Pause.
func (s *System) Unpause(ctx context.Context) error { return s.ask(ctx, "unpause") }

func (s *System) ask(ctx context.Context, what string) error {
	if s.container == nil {
		return errNoContainer
	}
	if _, err := s.container.run(ctx, what, s.container.name); err != nil {
		return fmt.Errorf("%s the container: %w", what, err)
	}
	return nil
}
