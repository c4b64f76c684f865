package build

import (
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPlatforms(t *testing.T) {
	got, err := Platforms(" linux/amd64  windows/arm64")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Platform{{"linux", "amd64"}, {"windows", "arm64"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got[0].Exe() != "carronade" || got[1].Exe() != "carronade.exe" || got[1].Suffix() != "windows_arm64" {
		t.Errorf("got the names %s, %s, %s", got[0].Exe(), got[1].Exe(), got[1].Suffix())
	}
	for _, bad := range []string{"", "linux", "linux/", "/amd64", "linux/arm/v7"} {
		if got, err := Platforms(bad); err == nil {
			t.Errorf("%q: got %v and no error", bad, got)
		}
	}
}

func TestFacts(t *testing.T) {
	settings := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "532f904b"},
		{Key: "vcs.time", Value: "2026-11-23T22:00:01.5Z"},
		{Key: "vcs.modified", Value: "true"},
	}
	commit, epoch := time.Date(2026, 11, 23, 22, 0, 1, 0, time.UTC), time.Unix(1700000000, 0).UTC()
	for _, tt := range []struct {
		name, version, epoch string
		settings             []debug.BuildSetting
		want                 Facts
		fails                string
	}{
		{"a tag", "v1.2.3", "", settings, Facts{"1.2.3", "532f904b", true, commit}, ""},
		{"its own time", "v1.2.3", "1700000000", settings, Facts{"1.2.3", "532f904b", true, epoch}, ""},
		{"no repository", "(devel)", "1700000000", nil, Facts{"0.0.0-devel", "", false, epoch}, ""},
		{"no time", "(devel)", "", nil, Facts{}, "set SOURCE_DATE_EPOCH"},
		{"a wrong time", "(devel)", "now", nil, Facts{}, `"now" is not a number`},
		{"a wrong time of the commit", "", "", []debug.BuildSetting{{Key: "vcs.time", Value: "yesterday"}}, Facts{}, "time of the commit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := facts(&debug.BuildInfo{Main: debug.Module{Version: tt.version}, Settings: tt.settings}, tt.epoch)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("got %v, want %s", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTag(t *testing.T) {
	if got := (Facts{Version: "0.0.0-1-a+dirty"}).Tag(); got != "0.0.0-1-a-dirty" {
		t.Errorf("got %s", got)
	}
}
