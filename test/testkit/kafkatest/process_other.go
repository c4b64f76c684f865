//go:build !unix

package kafkatest

import (
	"errors"
	"os"
)

func killGroup(p *os.Process) { _ = p.Kill() }

func terminate(p *os.Process) error { return p.Kill() }

func freeze(*os.Process) error { return errors.New("a process cannot be frozen on this system") }

func thaw(*os.Process) error { return errors.New("a process cannot be frozen on this system") }
