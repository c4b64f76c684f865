package kafkatools

import (
	"errors"
	"testing"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
)

// A run that is only not trusted exits with 0, as the tool does, unless --exit-on-distrust is given.
func TestExitOnDistrust(t *testing.T) {
	for _, c := range []struct {
		args      []string
		distrusts int // the exit code of a run that is not trusted
	}{{nil, host.ExitOK}, {[]string{"--exit-on-distrust"}, host.ExitUntrusted}, {[]string{"--exit-on-distrust=false"}, host.ExitOK}} {
		own, o, err := Producer.Split(append([]string{"--topic", "t"}, c.args...))
		assert.Must(t, err == nil && len(own) == 2, "%q, %v", own, err)
		assert.Equal(t, o.ExitCode(host.ExitUntrusted, nil), c.distrusts, "%v", c.args)
		for _, other := range []int{host.ExitOK, host.ExitBroken, host.ExitFailed, host.ExitInterrupted} {
			assert.Equal(t, o.ExitCode(other, nil), other, "%v", c.args)
		}
		assert.Equal(t, o.ExitCode(host.ExitUntrusted, errors.New("x")), host.ExitUntrusted, "with an error")
	}
}
