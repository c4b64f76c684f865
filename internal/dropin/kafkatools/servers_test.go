package kafkatools

import (
	"testing"

	"carronade/test/testkit/assert"
)

func TestServers(t *testing.T) {
	for _, tt := range []struct{ list, want, err string }{
		{"PLAINTEXT://a:1, b:2", "a:1,b:2", ""},
		{"", "", "Configuration 'bootstrap.servers' must not be empty. Valid values include: any non-empty value"},
		{" ", "", "Configuration 'bootstrap.servers' must not be empty. Valid values include: any non-empty value"},
		{"a:1,b:2/chroot", "", "Invalid url in bootstrap.servers: b:2/chroot"},
	} {
		got, err := readServers(tt.list)
		assert.True(t, got == tt.want && (err == nil) == (tt.err == "") && (err == nil || err.Error() == tt.err),
			"%q: got %q, %v; want %q, %s", tt.list, got, err, tt.want, tt.err)
	}
}

func TestUnknownOption(t *testing.T) {
	for arg, want := range map[string]string{
		"more":                          "warning: unknown option more is ignored\n",
		"ssl.key.password=hunter2":      "warning: unknown option ssl.key.password is ignored\n",
		`x=M username="a" password=hu=`: "warning: unknown option x is ignored\n",
	} {
		assert.Equal(t, unknownOption(arg), want)
	}
}

func TestHosts(t *testing.T) {
	for list, want := range map[string]string{
		"a:1":                            "a:1",
		"a:1,b:2":                        "a:1,b:2",
		" a:1, b:2 ":                     "a:1,b:2",
		"PLAINTEXT://a:1,SSL://[::1]:2":  "a:1,[::1]:2",
		"SASL_SSL://a:1 , PLAINTEXT://b": "a:1,b",
		"":                               "",
	} {
		assert.Equal(t, HostList(list), want, "%q", list)
	}
}
