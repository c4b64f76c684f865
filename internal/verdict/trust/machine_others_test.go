package trust

import (
	"context"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

func TestOthers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		window     MachineWindow
		processors int
		want       string
	}{
		{"idle", MachineWindow{Length: 100 * time.Millisecond, Busy: 0.1}, 2, ""},
		{"own", MachineWindow{Length: 100 * time.Millisecond, Busy: 1.9, Own: 1.8}, 2, ""},
		{"busy", MachineWindow{Length: 100 * time.Millisecond, Busy: 2, Own: 0.06}, 2, "other programs use 97% of the processors"},
		{"more than there is", MachineWindow{Length: 100 * time.Millisecond, Busy: 2.4}, 2, "other programs use 100% of the processors"},
		{"too short to tell", MachineWindow{Length: 100 * time.Millisecond, Busy: 0.5}, 2, ""},
		{"long enough", MachineWindow{Length: time.Second, Busy: 0.5}, 2, "other programs use 25% of the processors"},
		{"many processors", MachineWindow{Length: 100 * time.Millisecond, Busy: 16}, 64, "other programs use 25% of the processors"},
		{"stolen", MachineWindow{Length: 100 * time.Millisecond, Steal: 0.4}, 2, "the hypervisor gives 40% of the processors to other machines"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := tt.window.others(tt.processors)
			assert.Equal(t, o.Text(), tt.want)
			assert.Equal(t, o.Disturb, tt.want != "", "disturbs")
		})
	}
	assert.Equal(t, (*Others)(nil).Text(), "")
}

// A run that is cut short while it connects does not wait for the measurement.
func TestOthersCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.True(t, Look().Others(ctx) == nil, "got a measurement")
}
