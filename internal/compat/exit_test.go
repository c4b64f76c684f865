package compat

import (
	"errors"
	"testing"

	"carronade/internal/system"
	"carronade/internal/testkit/assert"
)

// A run that is only not trusted exits with 0, as the tool does, unless --exit-on-distrust is given.
func TestExitOnDistrust(t *testing.T) {
	for _, c := range []struct {
		args      []string
		distrusts int // the exit code of a run that is not trusted
	}{{nil, system.ExitOK}, {[]string{"--exit-on-distrust"}, system.ExitUntrusted}, {[]string{"--exit-on-distrust=false"}, system.ExitOK}} {
		own, o, err := KafkaProducer.Split(append([]string{"--topic", "t"}, c.args...))
		assert.Must(t, err == nil && len(own) == 2, "%q, %v", own, err)
		assert.Equal(t, o.ExitCode(system.ExitUntrusted, nil), c.distrusts, "%v", c.args)
		for _, other := range []int{system.ExitOK, system.ExitBroken, system.ExitFailed, system.ExitInterrupted} {
			assert.Equal(t, o.ExitCode(other, nil), other, "%v", c.args)
		}
		assert.Equal(t, o.ExitCode(system.ExitUntrusted, errors.New("x")), system.ExitUntrusted, "with an error")
	}
}
