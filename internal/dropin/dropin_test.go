package dropin

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// A tool is found by its name, by an alias, and by the names of their files.
func TestFind(t *testing.T) {
	tools := []Tool{{Name: "kafka-topics"}, {Name: "mongoose", Aliases: []string{"mongoose-base"}}}
	for called, want := range map[string]string{
		"mongoose": "mongoose", "/usr/bin/mongoose": "mongoose", "./mongoose.jar": "mongoose", "mongoose.exe": "mongoose",
		"mongoose-base": "mongoose", "mongoose-base-4.2.11.jar": "mongoose", "kafka-topics.sh": "kafka-topics",
		"mongoose-4.2": "", "mongoose-base-next.jar": "", "topics": "", "carronade": "", "": "",
	} {
		got := ""
		if tool, ok := Find(tools, called); ok {
			got = tool.Name
		}
		assert.Equal(t, got, want, "%q finds", called)
	}
}

// Kafka's own runner runs what its first argument names.
func TestRunsOthers(t *testing.T) {
	for called, want := range map[string]bool{"kafka-run-class": true, "./bin/kafka-run-class.sh": true, "kafka-run": false, "carronade": false} {
		assert.Equal(t, RunsOthers(called), want, "%q", called)
	}
}

// Carronade's flags are taken out wherever they stand before "--"; the rest is the
// tool's, in order.
func TestSplit(t *testing.T) {
	dashes, one := &Tool{}, &Tool{OneDash: true}
	for _, tt := range []struct {
		tool      *Tool
		args, own string
		want      Common
		err       string
	}{
		{dashes, "--topic t --store a.db --label a=b --count 3 --label=c=d", "--topic t --count 3", Common{Keep: []Setting{{"store", "--store", "a.db"}, {"label", "--label", "a=b"}, {"label", "--label", "c=d"}}}, ""},
		{dashes, "--no-store --strict x --generation 4.1 --report-json=r", "x", Common{Strict: true, Generation: "4.1", ReportJSON: "r", Keep: []Setting{{"no-store", "--no-store", "true"}}}, ""},
		{dashes, "-store s -label l --labels m --storage n", "-store s -label l --labels m --storage n", Common{}, ""},
		{one, "-size 3 -store a.db -no-store=false --label a=b", "-size 3", Common{Keep: []Setting{{"store", "--store", "a.db"}, {"no-store", "--no-store", "false"}, {"label", "--label", "a=b"}}}, ""},
		{one, "-strict -e store - -- -store", "-e store - -- -store", Common{Strict: true}, ""},
		{dashes, "x --store", "", Common{}, "--store needs a value"},
		{dashes, "--no-store=maybe", "", Common{}, "--no-store=maybe: must be true or false"},
	} {
		own, got, err := tt.tool.Split(strings.Fields(tt.args))
		if tt.err != "" {
			assert.True(t, err != nil && err.Error() == tt.err, "%q: error %v, want %q", tt.args, err, tt.err)
			continue
		}
		assert.True(t, err == nil && slices.Equal(own, strings.Fields(tt.own)) && reflect.DeepEqual(got, tt.want),
			"%q: %q, %+v, %v, want %q, %+v", tt.args, own, got, err, tt.own, tt.want)
	}
}
