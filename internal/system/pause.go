package system

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

// Unpause lets a container go on after Pause. One that is not paused is as wanted.
func (s *System) Unpause(ctx context.Context) error {
	err := s.ask(ctx, "unpause")
	if c := s.container; err != nil && c != nil && c.inspect(ctx) == nil && !c.facts().State.Paused {
		return nil
	}
	return err
}

// UnpauseByHand is the command that does what Unpause does.
func (s *System) UnpauseByHand() string {
	if s.container == nil {
		return ""
	}
	return s.container.kind() + " unpause " + s.container.name
}

func (s *System) ask(ctx context.Context, what string) error {
	if s.container == nil {
		return errNoContainer
	}
	if _, err := s.container.run(ctx, what, s.container.name); err != nil {
		return fmt.Errorf("%s the container: %w", what, err)
	}
	return nil
}
