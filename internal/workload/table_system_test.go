package workload

import (
	"strings"
	"testing"
)

func TestSystemSettings(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pairs []string
		want  string // in the error; "" is none
	}{
		{"a command with its flags", []string{"system-cmd=apm-server -e", "system-flag=output.elasticsearch.hosts=127.0.0.1:9200", "system-mem=4GiB"}, ""},
		{"a revision, built", []string{"system-cmd={tree}/server", "system-git=.", "system-checkout=main", "system-build=make"}, ""},
		{"watched alone", []string{"system-pid=1", "system-vars=http://127.0.0.1:8200/debug/vars"}, ""},
		{"two systems", []string{"system-cmd=a", "system-pid=1"}, "is given by --system-cmd already"},
		{"a flag for nothing", []string{"system-flag=a=b"}, "goes with --system-cmd or --system-image"},
		{"a build of nothing", []string{"system-build=make"}, "goes with --system-git"},
		{"a secret in clear", []string{"system-cmd=a", "system-env=API_TOKEN=s3cret"}, "looks like a secret"},
		{"a secret by reference", []string{"system-cmd=a", "system-env=API_TOKEN=env:TOKEN"}, ""},
		{"a header in clear", []string{"system-vars=http://127.0.0.1/", "system-header=Authorization=Bearer s3cret"}, "must be NAME=env:VARIABLE"},
		{"no memory at all", []string{"system-cmd=a", "system-mem=1"}, "1 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d Document
			d.Add("target", "target", "cannon://127.0.0.1:1")
			for _, p := range tt.pairs {
				name, v, _ := strings.Cut(p, "=")
				d.Add(name, "--"+name, v)
			}
			_, err := Resolve(kinds, &d, nil)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q in it", err, tt.want)
			case err != nil && strings.Contains(err.Error(), "s3cret"):
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

func TestSystemCommandIsMasked(t *testing.T) {
	var d Document
	d.Add("target", "target", "cannon://127.0.0.1:1")
	d.Add("system-cmd", "--system-cmd", "server -E output.elasticsearch.password=s3cret")
	w, err := Resolve(kinds, &d, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := w.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "s3cret") || !strings.Contains(string(text), "output.elasticsearch.password") {
		t.Errorf("the workload shows %s", text)
	}
}
