package sangrenel

import (
	"strings"
	"testing"

	"carronade/internal/dropin"
	"carronade/test/testkit/assert"
)

// The flags of 2015 and 2016 select their lines and mean what they did.
func TestSangrenel2015(t *testing.T) {
	f := newSangrenelFake()
	got := f.run(t, false, "-size=1000", "-clients=2", "-producers=3", "-rate=5000", "-batch=10", "-compression=gzip", "-topic=rep")
	assert.True(t, matchesAll(`
::: Sangrenel :::

Starting 2 client workers, 3 producers per worker
Message size 1000 bytes, 10 message limit per batch
Compression: GZIP
Killing Connections
`, got.Out), "%s", got.Out)
	for _, line := range []string{"client_1 connected\n", "client_2 connected\n", "Generating 15Mb/sec @ 2000 messages/sec | topic: rep | 11.00ms 90%ile latency\n", "-batch does nothing"} {
		assert.True(t, strings.Contains(got.Errs, line), "no %q in %s", line, got.Errs)
	}
	for name, want := range map[string]string{"size": "1000", "clients": "2", "max-in-flight": "3", "rate": "5000/s", "compression": "gzip", "batch-events": "1", "create-topic": "auto", "payload": sangrenelPayload} {
		assert.Equal(t, got.Last()[name], want, "%s", name)
	}
	for _, c := range []struct{ args, lines string }{
		{"-brokers=a:1 -size=10 -workers=2", sangrenel2014},
		{"-size=10 -compression=none", sangrenel2015},
		{"-workers=2 -rate=5", sangrenel2015},
		{"-compression=gzip", sangrenel2022},
		{"-producers-per-worker=3", sangrenel2022},
		{"-required-acks=all -message-size=5", sangrenel2022},
	} {
		var o sangrenelOptions
		fs := o.flagSet("sangrenel")
		assert.OK(t, fs.Parse(strings.Fields(c.args)))
		o.given = dropin.GivenFlags(fs)
		lines, err := o.generation("")
		assert.True(t, lines == c.lines && err == nil, "%s: %s %v", c.args, lines, err)
	}
}

// Help lists the flags of the generation that is asked for.
func TestSangrenelHelpOfGeneration(t *testing.T) {
	help := func(generation string) string {
		var errs strings.Builder
		code, err := Tool.Main(t.Context(), &dropin.Program{Called: "sangrenel", Generation: generation, Args: []string{"-h"}, Err: &errs})
		assert.True(t, code == 0 && err == nil, "exit %d, %v", code, err)
		usage, _, _ := strings.Cut(errs.String(), "flags of carronade")
		return usage
	}
	for generation, c := range map[string]struct{ has, lacks string }{
		"2014": {"-size", "-message-size"}, "2015": {"-producers", "-required-acks"}, "2022": {"-message-size", "-rate"}, "": {"-rate", "-nosuch"},
	} {
		text := help(generation)
		assert.True(t, strings.Contains(text, "  "+c.has+" "), "%s: no %s in\n%s", generation, c.has, text)
		assert.True(t, !strings.Contains(text, "  "+c.lacks+" "), "%s: %s in\n%s", generation, c.lacks, text)
	}
}

// The set of 2014 has a percent sign, and -noop printed its connections.
func TestSangrenel2014(t *testing.T) {
	got := newSangrenelFake().run(t, false, "-noop", "-workers=2")
	assert.True(t, strings.Contains(got.Last()["payload"], "%"), "payload %s", got.Last()["payload"])
	for _, line := range []string{"\nclient_2 connected\n", "\nclient_2 shutting down\n"} {
		assert.True(t, strings.Contains(got.Out, line), "no %q in %s", line, got.Out)
	}
}
