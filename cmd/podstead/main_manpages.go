//go:build manpages

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// main writes the manual pages and the completion scripts of the commands for packages, into the directory of the argument. The time in
// the pages is SOURCE_DATE_EPOCH, in Unix seconds.
func main() {
	if err := writePackageFiles(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manpages:", err)
		os.Exit(1)
	}
}

func writePackageFiles(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("got %d arguments, want the output directory", len(args))
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	date := time.Unix(epoch, 0).UTC()
	root := (&app{out: io.Discard, err: io.Discard}).root()
	root.DisableAutoGenTag = true
	root.InitDefaultCompletionCmd()

	man := filepath.Join(args[0], "man")
	if err := os.MkdirAll(man, 0o755); err != nil {
		return err
	}
	header := &doc.GenManHeader{Section: "1", Date: &date, Source: "Podstead " + version, Manual: "Podstead"}
	if err := doc.GenManTree(root, header, man); err != nil {
		return fmt.Errorf("write the manual pages: %w", err)
	}
	return writeCompletions(root, filepath.Join(args[0], "completions"))
}

// writeCompletions writes the scripts under the names that each shell looks for.
func writeCompletions(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, write := range map[string]func(string) error{
		"podstead":      func(path string) error { return root.GenBashCompletionFileV2(path, true) },
		"_podstead":     root.GenZshCompletionFile,
		"podstead.fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
	} {
		if err := write(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("write completion %s: %w", name, err)
		}
	}
	return nil
}
