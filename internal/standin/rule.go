package standin

import (
	"fmt"
	"strings"
	"time"

	"carronade/units"
)

// A Rule makes a share of a stand-in's answers errors. T is the stand-in's type
// of an error in its protocol.
type Rule[T any] struct {
	Name  string // of the error, as users write it
	What  T
	Share float64 // 0 to 1, of the answers that may carry it
}

// ParseRule parses "NAME@SHARE", such as "timeout@1%"; the name may contain an @.
// byName returns the rule of a name, without its share. form describes the
// expected form, for the error about a rule without share or name.
func ParseRule[T any](s, form string, byName func(name string) (Rule[T], error)) (Rule[T], error) {
	at := strings.LastIndexByte(s, '@')
	if at <= 0 {
		return Rule[T]{}, fmt.Errorf("error rule %q: want %s", s, form)
	}
	share, err := units.ParseShare(s[at+1:])
	if err != nil {
		return Rule[T]{}, fmt.Errorf("error rule %q: %w", s, err)
	}
	r, err := byName(s[:at])
	if err != nil {
		return Rule[T]{}, fmt.Errorf("error rule %q: %w", s, err)
	}
	r.Share = share
	return r, nil
}

// String is the form that ParseRule parses.
func (r Rule[T]) String() string { return r.Name + "@" + units.FormatPercent(r.Share) }

// CheckRules reports what is wrong with a delay and with lists of rules. Each list has
// its own dice.
func CheckRules[T any](delay time.Duration, lists ...[]Rule[T]) error {
	if delay < 0 {
		return fmt.Errorf("a delay of %v: want 0 or more", delay)
	}
	for _, rules := range lists {
		total := 0.0
		for _, r := range rules {
			if r.Share < 0 || r.Share > 1 {
				return fmt.Errorf("error %s in %s of the answers: want 0%% to 100%%", r.Name, units.FormatPercent(r.Share))
			}
			total += r.Share
		}
		if total > 1 {
			return fmt.Errorf("errors in %s of the answers: want at most 100%% in sum", units.FormatPercent(total))
		}
	}
	return nil
}

// NewRuleDice returns dice whose sides are the rules.
func NewRuleDice[T any](seed uint64, rules []Rule[T]) *Dice {
	shares := make([]float64, len(rules))
	for i, r := range rules {
		shares[i] = r.Share
	}
	return NewDice(seed, shares...)
}
