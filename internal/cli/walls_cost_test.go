package cli_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"carronade/internal/serve"
)

// BenchmarkWalls measures a job's process from its start to its end, without a wall, with the rules alone,
// and with the rules and the system. The difference is what the walls cost a job.
func BenchmarkWalls(b *testing.B) {
	program := carronade(b)
	dir := b.TempDir()
	rules := &serve.Rules{Folder: dir, Store: filepath.Join(dir, "reports.db")}
	both := *rules
	both.Wall = &serve.Wall{AnyPort: true}
	for name, env := range map[string][]string{"none": nil, "rules": {rules.Environment()}, "rules and system": {both.Environment()}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), program, "version")
				cmd.Env, cmd.Dir = append(env, "XDG_DATA_HOME="+dir, "HOME="+dir, "TMPDIR="+dir), dir
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
			}
		})
	}
}
