package compat

import "testing"

func TestServers(t *testing.T) {
	for _, tt := range []struct{ list, want, err string }{
		{"PLAINTEXT://a:1, b:2", "a:1,b:2", ""},
		{"", "", "Configuration 'bootstrap.servers' must not be empty. Valid values include: any non-empty value"},
		{" ", "", "Configuration 'bootstrap.servers' must not be empty. Valid values include: any non-empty value"},
		{"a:1,b:2/chroot", "", "Invalid url in bootstrap.servers: b:2/chroot"},
	} {
		got, err := KafkaServers(tt.list)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%q: got %q, %v; want %q, %s", tt.list, got, err, tt.want, tt.err)
		}
	}
}

func TestStray(t *testing.T) {
	for arg, want := range map[string]string{
		"more":                          "warning: unknown option more is ignored\n",
		"ssl.key.password=hunter2":      "warning: unknown option ssl.key.password is ignored\n",
		`x=M username="a" password=hu=`: "warning: unknown option x is ignored\n",
	} {
		if got := UnknownOption(arg); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
