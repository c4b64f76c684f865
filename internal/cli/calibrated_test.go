package cli

import (
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// TestCalibrationFor checks which of several calibrations a report cites, and that it says so if
// that is of another workload.
func TestCalibrationFor(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	s := &session{Program: &Program{Kinds: Kinds()}}
	workloadOf := func(settings ...string) *workload.Workload {
		t.Helper()
		var d workload.Document
		d.Add("count", "the test's count", "10")
		for i := 0; i < len(settings); i += 2 {
			d.Add(settings[i], "the test's "+settings[i], settings[i+1])
		}
		w := assert.Value(workload.Resolve(s.Kinds, &d, nil))(t)
		return w
	}
	const kafka, riemann, apm = "kafka://127.0.0.1:9092/t", "riemann://127.0.0.1", "apm+http://127.0.0.1"
	got := s.calibrationFor(workloadOf("target", kafka), 100)
	assert.Must(t, got == nil, "without a calibration: got %+v", got)
	keep := func(processors int, host string, c report.Calibration) {
		t.Helper()
		c.Version = "v"
		_, err := keepCalibration(&calibration{Schema: calibrationSchema, Host: host, Processors: processors, Calibration: c})
		assert.OK(t, err)
	}
	for i, c := range []report.Calibration{
		{EventBytes: 100, NullPerS: 1}, // of an older program
		{EventBytes: 2000, Target: "kafka", Clients: 1, NullPerS: 1},
		{EventBytes: 2000, Target: "kafka", Clients: 8, NullPerS: 1},
		{EventBytes: 84, Target: "riemann", Clients: 1},
	} {
		c.At = time.Unix(int64(i), 0)
		keep(load.Processors(), hostName(), c)
	}
	keep(load.Processors()+1, hostName(), report.Calibration{EventBytes: 500, Target: "kafka", Clients: 2})
	keep(load.Processors(), hostName()+".other", report.Calibration{EventBytes: 501, Target: "kafka", Clients: 2})

	for _, tt := range []struct {
		name             string
		of               *workload.Workload
		bytes, wantBytes float64
		clients          int
		instead          string
	}{
		{"the default", workloadOf("target", kafka), 100, 100, 0, ""},
		{"a quarter larger", workloadOf("target", kafka, "size", "125"), 125, 100, 0, ""},
		{"of a third size", workloadOf("target", kafka, "size", "200"), 200, 100, 0, "carronade calibrate --target kafka --size 200"},
		{"large events", workloadOf("target", kafka, "size", "2000"), 2000, 2000, 1, ""},
		{"many clients", workloadOf("target", kafka, "size", "2000", "clients", "8"), 2000, 2000, 8, ""},
		{"other clients", workloadOf("target", kafka, "clients", "3"), 100, 2000, 8, "carronade calibrate --target kafka --clients 3"},
		{"nothing is sent", workloadOf("target", "null://", "size", "2000"), 2000, 2000, 1, ""},
		{"events of unknown size", workloadOf("target", kafka), 0, 100, 0, ""},
		{"Riemann", workloadOf("target", riemann), 90, 84, 1, ""},
		{"a kind without one", workloadOf("target", apm, "clients", "1"), 1500, 2000, 1, "carronade calibrate --target apm --clients 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := s.calibrationFor(tt.of, tt.bytes)
			assert.Must(t, got != nil, "got none")
			assert.True(t, got.EventBytes == tt.wantBytes && got.Clients == tt.clients && got.Instead == tt.instead,
				"got %.0f bytes, %d clients, instead %q; want %.0f, %d, %q",
				got.EventBytes, got.Clients, got.Instead, tt.wantBytes, tt.clients, tt.instead)
		})
	}
	if got := keptCalibrations(); len(got) != 4 || !got[0].isDefault() || got[1].Target != "riemann" {
		t.Errorf("got %+v, want four, the default first, then the newest", got)
	}
}
