package workload

import (
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

func TestSystemSettings(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pairs []string
		want  string // in the error; "" is none
	}{
		{"a command with its flags", []string{"system-cmd=apm-server -e", "system-flag=output.elasticsearch.hosts=127.0.0.1:9200", "system-mem=4GiB"}, ""},
		{"a revision, built", []string{"system-cmd={tree}/server", "system-git=.", "system-checkout=main", "system-build=make"}, ""},
		{"only watched", []string{"system-pid=1", "system-vars=http://127.0.0.1:8200/debug/vars"}, ""},
		{"two systems", []string{"system-cmd=a", "system-pid=1"}, "--system-cmd already gives the system"},
		{"a flag without a command", []string{"system-flag=a=b"}, "goes with --system-cmd or --system-image"},
		{"a build without a repository", []string{"system-build=make"}, "goes with --system-git"},
		{"a secret in clear", []string{"system-cmd=a", "system-env=API_TOKEN=s3cret"}, "looks like a secret"},
		{"a login in clear", []string{"system-cmd=a", "system-flag=cloud.auth=elastic:s3cret"}, "looks like a secret"},
		{"a secret by reference", []string{"system-cmd=a", "system-env=API_TOKEN=env:TOKEN"}, ""},
		{"a header in clear", []string{"system-vars=http://127.0.0.1/", "system-header=Authorization=Bearer s3cret"}, "must be NAME=env:VARIABLE"},
		{"a build that is not started", []string{"system-git=.", "system-build=make"}, "goes with --system-cmd or --system-image"},
		{"an address for a remote", []string{"system-cmd=a", "system-git=.", "system-checkout=main", "system-fetch=https://me:s3cret@h/r"}, "the name of a remote"},
		{"a revision in words", []string{"revision=4.1.0-rc2, heap 8g"}, ""},
		{"a revision in words and a repository", []string{"revision=4.1", "system-git=."}, "--system-git already gives the revision"},
		{"a revision in words and its branch", []string{"revision=4.1", "system-branch=release/4"}, ""},
		{"a commit and its branch", []string{"system-cmd=a", "system-git=.", "system-checkout=0123abc", "system-branch=main"}, ""},
		{"a branch of nothing", []string{"system-cmd=a", "system-branch=main"}, "goes with --system-git or --revision"},
		{"a branch with a blank", []string{"revision=4.1", "system-branch=my branch"}, "must be the name of a branch"},
		{"a revision of two lines", []string{"revision=4.1\n4.2"}, "must be a text of 1 to 100 characters in one line"},
		{"a long revision", []string{"revision=" + strings.Repeat("x", 101)}, "must be a text of 1 to 100 characters in one line"},
		{"no processors", []string{"system-cmd=a", "system-cpus=0"}, "from 0.01 on"},
		{"no memory", []string{"system-cmd=a", "system-mem=1"}, "1MiB"},
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
				t.Errorf("the error contains the secret: %v", err)
			}
		})
	}
}

// TestSystemIsMasked puts a secret into each setting that may contain one: the
// workload in a report must not show it, and must be refused as a workload
// until the secret is put back.
func TestSystemIsMasked(t *testing.T) {
	const canary = "kestrel-3310"
	for _, tt := range []struct {
		name   string
		pairs  []string
		want   string // shown
		filled bool   // the secret is a reference: usable again as it is
	}{
		{"a setting", []string{"system-cmd=server -E output.elasticsearch.password=" + canary}, "output.elasticsearch.password=***", false},
		{"a quoted value", []string{"system-cmd=server --password 'a " + canary + "'"}, "--password ***", false},
		{"a script", []string{"system-cmd=sh -c 'exec server --password " + canary + "'"}, "--password ***", false},
		{"arguments of an image", []string{"system-image=i", "system-arg=--password", "system-arg=" + canary}, `"--password","***"`, false},
		{"an address in the environment", []string{"system-cmd=a", "system-env=DB=postgres://me:" + canary + "@h/"}, "DB=postgres://***@h/", false},
		{"an address in a flag", []string{"system-cmd=a", "system-flag=hosts=http://me:" + canary + "@h/"}, "hosts=http://***@h/", false},
		{"a reference", []string{"system-cmd=a", "system-env=API_TOKEN=env:T"}, "API_TOKEN=env:T", true},
		{"readiness", []string{"system-cmd=a", "system-ready=http://me:" + canary + "@h/"}, "http://***@h/", false},
		{"vars", []string{"system-vars=http://me:" + canary + "@h/"}, "http://***@h/", false},
		{"metrics", []string{"system-metrics=http://h/?token=" + canary}, "token=***", false},
		{"a shell's words", []string{"system-git=.", "system-cmd=a", "system-build=make && make install"}, `make && make install`, true},
		{"a build", []string{"system-git=.", "system-cmd=a", "system-build=make TOKEN=" + canary}, "TOKEN=***", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d Document
			d.Add("target", "target", "cannon://127.0.0.1:1")
			for _, p := range tt.pairs {
				name, v, _ := strings.Cut(p, "=")
				d.Add(name, "--"+name, v)
			}
			w := assert.Value(Resolve(kinds, &d, nil))(t)
			text := assert.Value(w.MarshalJSON())(t)
			assert.True(t, !strings.Contains(string(text), canary) && strings.Contains(string(text), tt.want),
				"the workload shows %s, want %s in it", text, tt.want)
			again := assert.Value(Read("report.json", strings.NewReader(string(text))))(t)
			_, err := Resolve(kinds, &Document{}, again[0])
			assert.Equal(t, err == nil, tt.filled, "as a workload again: %v", err)
			assert.True(t, err == nil || strings.Contains(err.Error(), "the placeholder of a secret"), "got %v, want the reason", err)
		})
	}
}
