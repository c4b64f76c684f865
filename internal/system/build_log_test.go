package system

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"carronade/internal/secret"
	"carronade/test/testkit/assert"
)

// A long output is stored with its beginning and its end, in whole lines.
func TestBuildLog(t *testing.T) {
	const line = "line 00" // 8 bytes with its end
	for _, tt := range []struct {
		name        string
		lines       int
		first, last []int // which are stored: from, to
		dropped     int64
	}{
		{"short", 5, []int{0, 5}, nil, 0},
		{"as long as the beginning", 10, []int{0, 10}, nil, 0},
		{"longer by what is kept of the end", 17, []int{0, 10}, []int{10, 17}, 0},
		{"longer", 18, []int{0, 10}, []int{14, 18}, 32},
		{"longer, between two cuts", 20, []int{0, 10}, []int{14, 20}, 32},
		{"much longer", 50, []int{0, 10}, []int{46, 50}, 36 * 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			l := newBuildLog(&out, 10*(len(line)+1), 4*(len(line)+1))
			for i := range tt.lines {
				l.add(fmt.Sprintf("line %02d", i))
			}
			assert.OK(t, l.finish())
			var want strings.Builder
			for i := tt.first[0]; i < tt.first[1]; i++ {
				fmt.Fprintf(&want, "line %02d\n", i)
			}
			if tt.dropped > 0 {
				fmt.Fprintf(&want, "... %d bytes, not kept ...\n", tt.dropped)
			}
			for i := 0; tt.last != nil && i < tt.last[1]-tt.last[0]; i++ {
				fmt.Fprintf(&want, "line %02d\n", tt.last[0]+i)
			}
			got := out.String()
			assert.True(t, got == want.String(), "got\n%swant\n%s", got, want.String())
			assert.Equal(t, l.printed, int64(tt.lines*8), "bytes printed")
		})
	}
}

// The output of a build is the end of what it printed, without secrets, also when it was
// built before.
func TestOutput(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("builds are written for sh")
	}
	dir, cache := project(t), t.TempDir()
	write(t, filepath.Join(dir, "Makefile"), "all:\n\t@echo making with $$TOKEN\n\t@echo a warning >&2\n\t@echo made\n")
	sh(t, dir, "add", ".")
	sh(t, dir, "commit", "--quiet", "-m", "make")
	for _, tt := range []struct {
		name, command, want string
	}{
		{"make", "make -s", "making with ***\na warning\nmade\n"},
		{"a build that prints nothing", "true", ""},
		{"no build", "", ""},
	} {
		for _, cached := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, cached %v", tt.name, cached), func(t *testing.T) {
				var mask secret.Mask
				mask.Add(canary)
				b, err := MakeBuild(t.Context(), BuildOrder{Dir: dir, Cache: cache, Command: tt.command, Env: []string{"TOKEN=" + canary}, Mask: &mask})
				assert.OK(t, err)
				defer b.Release()
				assert.Equal(t, b.Cached, cached, "cached")
				assert.True(t, b.printed == int64(len(tt.want)), "got %d bytes printed, want %d", b.printed, len(tt.want))
				if got, cut, err := b.output(); err != nil || string(got) != tt.want || cut != 0 {
					t.Errorf("got %q after %d bytes, %v, want %q", got, cut, err, tt.want)
				}
			})
		}
	}
}

// The end of a long output is whole lines, and what came before it is counted.
func TestOutputOfALongBuild(t *testing.T) {
	name := filepath.Join(t.TempDir(), "build.log")
	line := strings.Repeat("x", 1023) + "\n"
	for _, tt := range []struct {
		name          string
		before, first string
		lines         int
		printed       int64 // 0: by an earlier version, which did not count it
		want          int
		cut           int64
	}{
		{"all", "", "", 1024, 1 << 20, 1024, 0},
		{"a line more", "first\n", "", 1024, 1<<20 + 6, 1024, 6},
		{"a line that is cut", "first\n", "part of a line ", 1024, 1<<20 + 21, 1023, 1024 + 21},
		{"not all was stored", "first\n... 100 bytes, not kept ...\n", "", 1024, 1<<20 + 106, 1024, 106},
		{"not counted", "first\n", "", 1024, 0, 1024, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			write(t, name, tt.before+tt.first+strings.Repeat(line, tt.lines))
			b := Build{Log: name, printed: tt.printed}
			got, cut, err := b.output()
			assert.True(t, err == nil && string(got) == strings.Repeat(line, tt.want) && cut == tt.cut,
				"got %d bytes after %d, %v, want %d lines after %d", len(got), cut, err, tt.want, tt.cut)
		})
	}
	assert.OK(t, os.Remove(name))
	assert.OK(t, os.Mkdir(name, 0o755))
	b := Build{Log: name}
	if _, _, err := b.output(); err == nil || !strings.Contains(err.Error(), "read the output of the build: is a directory") {
		t.Errorf("got %v of a folder", err)
	}
}
