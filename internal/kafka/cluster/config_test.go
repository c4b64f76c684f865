package cluster

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit/assert"
)

func TestOptionsTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range Options() {
		assert.True(t, !seen[o.Name], "option %s is listed twice", o.Name)
		seen[o.Name] = true
		assert.True(t, o.Help != "" && o.Group != "", "option %s has no help or no group", o.Name)
		assert.True(t, !strings.HasSuffix(o.Help, "."), "option %s: the help ends with a full stop", o.Name)
		if o.Default != "" {
			assert.OK(t, checkOption(o.Name, o.Default), "option %s: default %q", o.Name, o.Default)
		}
		assert.True(t, !o.Secret || !o.Independent, "option %s is secret and independent", o.Name)
	}
	for name, p := range properties {
		assert.True(t, p.option == "" || seen[p.option] || p.option == "linger" || p.option == "max-in-flight",
			"property %s sets %s, which is not an option", name, p.option)
	}
}

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, url string
		seeds     []string
		topic     string
		wrong     string // part of the error
	}{
		{name: "one host", url: "kafka://a:1/t", seeds: []string{"a:1"}, topic: "t"},
		{name: "default port", url: "kafka://a/t", seeds: []string{"a:9092"}, topic: "t"},
		{name: "default topic", url: "kafka://a:1", seeds: []string{"a:1"}, topic: "carronade"},
		{name: "slash only", url: "kafka://a:1/", seeds: []string{"a:1"}, topic: "carronade"},
		{name: "several hosts", url: "kafka://a:1,b,c:3/t", seeds: []string{"a:1", "b:9092", "c:3"}, topic: "t"},
		{name: "v6", url: "kafka://[::1]:7/t", seeds: []string{"[::1]:7"}, topic: "t"},
		{name: "several topics", url: "kafka://a/x-{1..3},y", seeds: []string{"a:9092"}, topic: "x-1 x-2 x-3 y"},
		{name: "a range with zeros, and one in one", url: "kafka://a/{08..10}.{0..1}", seeds: []string{"a:9092"}, topic: "08.0 08.1 09.0 09.1 10.0 10.1"},
		{name: "a topic twice", url: "kafka://a/x-2,x-{1..3}", wrong: "x-2 twice"},
		{name: "a range that is open", url: "kafka://a/x-{1..3", wrong: "without a }"},
		{name: "a range that was not opened", url: "kafka://a/x-1..3}", wrong: "} without a {"},
		{name: "a range of letters", url: "kafka://a/x-{a..c}", wrong: "not a range of numbers"},
		{name: "a range downwards", url: "kafka://a/x-{3..1}", wrong: "ends before it begins"},
		{name: "a range that is too large", url: "kafka://a/x-{0..999999999}", wrong: "more than 200,000 topics"},
		{name: "ranges that are too large together", url: "kafka://a/{0..9999}-{0..9999}", wrong: "more than 200,000 topics"},
		{name: "no name between commas", url: "kafka://a/x,,y", wrong: "it is empty"},
		{name: "no host", url: "kafka:///t", topic: "t"},
		{name: "bad port", url: "kafka://a:70000/t", wrong: "port"},
		{name: "topic with a slash", url: "kafka://a/t/u", wrong: "character"},
		{name: "topic too long", url: "kafka://a/" + strings.Repeat("x", 250), wrong: "250"},
		{name: "dots", url: "kafka://a/..", wrong: "dot"},
		{name: "password in the URL", url: "kafka://u:canary@a/t", wrong: "user or a password"},
		{name: "query", url: "kafka://a/t?token=canary", wrong: "must not have a query"},
		{name: "fragment", url: "kafka://a/t#canary", wrong: "must not have a query"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := assert.Value(url.Parse(tt.url))(t)
			seeds, names, _, err := parseTarget(u, nil)
			if tt.wrong != "" {
				assert.Must(t, err != nil && strings.Contains(err.Error(), tt.wrong), "got error %v, want one with %q", err, tt.wrong)
				assert.Must(t, !strings.Contains(err.Error(), "canary"), "the error contains the password: %v", err)
				return
			}
			assert.OK(t, err)
			assert.Same(t, seeds, tt.seeds, "seeds")
			assert.Equal(t, strings.Join(names, " "), tt.topic, "topics")
		})
	}
}

func TestParseSeeds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, list string
		want       []string
		wrong      string // part of the error
	}{
		{name: "none", list: " , "},
		{name: "blanks and an empty entry", list: "a:1, b,", want: []string{"a:1", "b:9092"}},
		{name: "bad port", list: "a:70000", wrong: "invalid port 70000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseSeeds(tt.list)
			if tt.wrong == "" && err != nil || tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
				t.Fatalf("got error %v, want %q", err, tt.wrong)
			}
			assert.Same(t, got, tt.want)
		})
	}
}

func TestConfigRefusesContradictions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		given map[string][]string
		wrong string
	}{
		{"idempotent with acks 1", map[string][]string{"idempotent": {"true"}, "acks": {"1"}}, "acks=all"},
		{"transactions with the wire engine", map[string][]string{"engine": {"wire"}, "transactions": {"true"}}, "client engine"},
		{"group with the wire engine", map[string][]string{"engine": {"wire"}, "group": {"g"}}, "client engine"},
		{"share group with the wire engine", map[string][]string{"engine": {"wire"}, "share-group": {"g"}}, "client engine"},
		{"two groups", map[string][]string{"engine": {"client"}, "group": {"g"}, "share-group": {"g"}}, "in a consumer group and in a share group"},
		{"the end of a share group", map[string][]string{"engine": {"client"}, "share-group": {"g"}, "until-end": {"true"}}, "a share group has no end"},
		{"murmur2 without keys", map[string][]string{"partitioner": {"murmur2"}}, "needs keys"},
		{"partitioner", map[string][]string{"partitioner": {"fixed(-1)"}}, "fixed(N)"},
		{"from", map[string][]string{"from": {"yesterday"}}, "earliest"},
		{"abort", map[string][]string{"engine": {"client"}, "transaction-abort": {"150%"}}, "transaction-abort"},
		{"batch", map[string][]string{"batch-size": {"0"}}, "batch-size"},
		{"huge batch", map[string][]string{"batch-size": {"2GiB"}}, "1GiB"},
		{"create-topic", map[string][]string{"create-topic": {"partitions=0"}}, "partitions=0"},
		{"profile", map[string][]string{"profile": {"rust"}}, "want java"},
		{"key", map[string][]string{"key": {"often"}}, `read --key: key "often"`},
		{"payload", map[string][]string{"payload": {"sand"}}, `read --payload: payload "sand"`},
		{"header", map[string][]string{"header": {"a=${nothing}"}}, `read --header: header "a=${nothing}"`},
		{"user without mechanism", map[string][]string{"user": {"a"}}, "without a mechanism"},
		{"secret on the command line", map[string][]string{"sasl-mechanism": {"PLAIN"}, "user": {"a"}, "password": {"canary"}}, "--password"},
		{"no such variable", map[string][]string{"sasl-mechanism": {"PLAIN"}, "user": {"a"}, "password": {"env:CARRONADE_NOT_SET"}}, "CARRONADE_NOT_SET"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseConfig(spec(t, "kafka://a/t", tt.given))
			assert.Must(t, err != nil && strings.Contains(err.Error(), tt.wrong), "got error %v, want one with %q", err, tt.wrong)
			assert.Must(t, !strings.Contains(err.Error(), "canary"), "the error contains the secret: %v", err)
		})
	}
}

func TestConfigPrecedence(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/client.properties"
	writeFile(t, file, "bootstrap.servers=x:1,y:2\nacks=0\nbatch.size=1000\nlinger.ms=7\n")
	s := spec(t, "kafka:///t", map[string][]string{
		"profile":         {"java"},
		"client-config":   {file},
		"client-property": {"batch.size=2000", "no.such=1", "key.serializer=x"},
		"compression":     {"lz4"},
	})
	c := assert.Value(ParseConfig(s))(t)
	assert.Same(t, c.Seeds, []string{"x:1", "y:2"}, "seeds")
	assert.True(t, c.Acks == 0 && !c.Idempotent, "got acks %d, idempotent %v, want the file's 0 without idempotence", c.Acks, c.Idempotent)
	assert.Equal(t, c.BatchSize, 2000, "batch size")
	assert.Equal(t, c.Compression, "lz4", "compression")
	assert.Equal(t, c.Partitioner.Kind, "sticky", "partitioner, the profile's: %v", c.Partitioner)
	want := []string{
		"the client property no.such has no meaning here and is ignored",
		"not idempotent, although the profile is: acks=0 was given (the Java client does the same)",
	}
	assert.Same(t, c.Warnings, want, "warnings")
	set, _, err := Presets(s.URL, s.Options, s.Given)
	assert.OK(t, err)
	assert.Equal(t, set["linger"], "7ms", "linger")
	s.Options["batch-size"], s.Given["batch-size"] = []string{"256KiB"}, true
	if c, err = ParseConfig(s); err != nil || c.BatchSize != 256<<10 {
		t.Errorf("got batch size %d, %v: an option given as its default must win", c.BatchSize, err)
	}
}

// The Java producer of 2018 has weaker defaults: acks=1, and no idempotence.
func TestConfigOfOldJava(t *testing.T) {
	t.Parallel()
	c, err := ParseConfig(spec(t, "kafka://a/t", map[string][]string{"profile": {"java1"}, "client-property": {"batch.size=8196"}}))
	assert.OK(t, err)
	assert.True(t, c.Acks == 1 && !c.Idempotent && c.BatchSize == 8196 && c.Partitioner.Kind == "roundrobin",
		"got acks %d, idempotent %v, batches of %d B, partitioner %v", c.Acks, c.Idempotent, c.BatchSize, c.Partitioner)
}

// The presets contain the acks that idempotence needs, however idempotence was
// requested, so that the report shows the acks that were really used.
func TestPresetsOfIdempotence(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		given map[string][]string
		want  string
	}{
		{"nothing", nil, ""},
		{"option", map[string][]string{"idempotent": {"true"}}, "all"},
		{"property", map[string][]string{"client-property": {"enable.idempotence=true"}}, "all"},
		{"property, with acks", map[string][]string{"client-property": {"enable.idempotence=true", "acks=1"}}, "1"},
		{"transactions", map[string][]string{"engine": {"client"}, "transactions": {"true"}}, "all"},
		{"transactional id", map[string][]string{"engine": {"client"}, "transactional-id": {"x"}}, "all"},
		{"transactional id by property", map[string][]string{"engine": {"client"}, "client-property": {"transactional.id=x"}}, "all"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := spec(t, "kafka://a/t", tt.given)
			set, _, err := Presets(s.URL, s.Options, s.Given)
			assert.OK(t, err)
			assert.Equal(t, set["acks"], tt.want, "acks")
		})
	}
}

// The presets contain settings that others override, too, so that the settings in a
// report are those of the run, and its workload can be run again.
func TestPresetsGiveWay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		given            map[string][]string
		idempotent, acks string
		warns            bool
	}{
		{"to acks", map[string][]string{"profile": {"java"}, "acks": {"1"}}, "false", "all", true},
		{"to acks by property", map[string][]string{"profile": {"java"}, "client-property": {"acks=1"}}, "false", "1", true},
		{"not to the same", map[string][]string{"profile": {"java"}, "acks": {"all"}}, "true", "all", false},
		{"to idempotence by property", map[string][]string{"profile": {"java1"}, "client-property": {"enable.idempotence=true"}}, "true", "all", true},
		{"not where both are given", map[string][]string{"client-property": {"enable.idempotence=true", "acks=1"}}, "true", "1", false},
		{"where acks are a default", map[string][]string{"idempotent": {"true"}}, "", "all", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := spec(t, "kafka://a/t", tt.given)
			set, warnings, err := Presets(s.URL, s.Options, s.Given)
			assert.OK(t, err)
			assert.Equal(t, (len(warnings) > 0), tt.warns, "warnings %q", warnings)
			assert.True(t, set["idempotent"] == tt.idempotent && set["acks"] == tt.acks,
				"got idempotent %q with acks %q, want %q with %q", set["idempotent"], set["acks"], tt.idempotent, tt.acks)
		})
	}
}

// A setting that was given and has no effect causes a warning.
func TestConfigWarnsOfUnusedSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, op string
		given    map[string][]string
		want     string // part of the warning; "" for none
	}{
		{"rack with the wire engine", OpConsume, map[string][]string{"rack": {"r"}}, "rack"},
		{"rack with the client engine", OpConsume, map[string][]string{"rack": {"r"}, "engine": {EngineClient}}, ""},
		{"in flight with an idempotent client engine", OpProduce, map[string][]string{"engine": {EngineClient}, "idempotent": {"true"}, "acks": {"all"}, "max-in-flight": {"2"}}, "max-in-flight"},
		{"in flight with the client engine", OpProduce, map[string][]string{"engine": {EngineClient}, "max-in-flight": {"2"}}, ""},
		{"in flight with the wire engine", OpProduce, map[string][]string{"idempotent": {"true"}, "acks": {"all"}, "max-in-flight": {"2"}}, ""},
		{"events per batch with the client engine", OpProduce, map[string][]string{"engine": {EngineClient}, "batch-events": {"1"}}, "batch-events"},
		{"events per batch with the wire engine", OpProduce, map[string][]string{"batch-events": {"1"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := spec(t, "kafka://a/t", tt.given)
			s.Op = tt.op
			if tt.given["max-in-flight"] != nil {
				s.MaxInFlight = 2
			}
			if tt.given["batch-events"] != nil {
				s.BatchEvents = 1
			}
			c := assert.Value(ParseConfig(s))(t)
			got := strings.Join(c.Warnings, "\n")
			assert.True(t, (got == "") == (tt.want == "") && strings.Contains(got, tt.want),
				"got warnings %q, want one about %q", got, tt.want)
		})
	}
}

// spec returns a spec as a workload makes it.
func spec(t testing.TB, rawURL string, given map[string][]string) protocol.Spec {
	t.Helper()
	return protocoltest.Spec(t, Options(), rawURL, given)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	assert.OK(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestSettingsOfBrokers(t *testing.T) {
	t.Parallel()
	config := func(key, value string, source kmsg.ConfigSource) kadm.Config {
		return kadm.Config{Key: key, Value: &value, Source: source}
	}
	secret := config("ssl.keystore.password", "canary", kmsg.ConfigSourceStaticBrokerConfig)
	secret.Sensitive = true
	for _, name := range identitySettings {
		assert.True(t, len(configuredOf([]kadm.Config{config(name, "x", kmsg.ConfigSourceStaticBrokerConfig)})) == 0,
			"%s, which identifies a broker, is reported", name)
	}
	one := configuredOf([]kadm.Config{
		config("num.io.threads", "64", kmsg.ConfigSourceStaticBrokerConfig), config("num.network.threads", "3", kmsg.ConfigSourceDefaultConfig),
		config("log.cleaner.threads", "2", kmsg.ConfigSourceDynamicDefaultBrokerConfig), config("node.id", "1", kmsg.ConfigSourceStaticBrokerConfig),
		secret,
		{Key: "unset", Source: kmsg.ConfigSourceStaticBrokerConfig},
	})
	assert.Same(t, one, map[string]string{"num.io.threads": "64", "log.cleaner.threads": "2"})
	for _, tt := range []struct {
		name      string
		described map[string]map[string]string
		want      map[string]string
	}{
		{"no broker answered", nil, map[string]string{}},
		{"all the same", map[string]map[string]string{"1": {"a": "x"}, "2": {"a": "x"}}, map[string]string{"a": "x"}},
		{
			"one differs, and one has the default",
			map[string]map[string]string{"10": {"a": "x"}, "2": {"a": "y"}, "9": {}, "3": {"a": "y"}},
			map[string]string{"a": "y: 2 3, its default: 9, x: 10"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Same(t, mergeSettings(tt.described), tt.want) })
	}
}
