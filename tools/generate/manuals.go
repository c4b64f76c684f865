package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"carronade/internal/cli"
)

// writeManuals writes man pages and shell completions. They are made from the tree of commands,
// so they agree with --help.
func writeManuals(dir string) error {
	man, completion := filepath.Join(dir, "man"), filepath.Join(dir, "completion")
	for _, d := range []string{man, completion} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	for name, text := range cli.ManPages(cli.Kinds()) {
		if err := os.WriteFile(filepath.Join(man, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	root := cli.Tree(cli.Kinds())
	for name, generate := range map[string]func(*cobra.Command, string) error{
		"carronade.bash": func(c *cobra.Command, path string) error { return c.GenBashCompletionFileV2(path, true) },
		"_carronade":     (*cobra.Command).GenZshCompletionFile,
		"carronade.fish": func(c *cobra.Command, path string) error { return c.GenFishCompletionFile(path, true) },
		"carronade.ps1":  (*cobra.Command).GenPowerShellCompletionFileWithDesc,
	} {
		if err := generate(root, filepath.Join(completion, name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
