//go:build manpages

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/podstead/podstead/internal/lazyregexp"
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
	if err := writePages(man, date); err != nil {
		return fmt.Errorf("write the manual pages of files: %w", err)
	}
	return writeCompletions(root, filepath.Join(args[0], "completions"))
}

// writePages writes the manual pages of section 5: those of docs/reference about files that a person writes.
func writePages(man string, date time.Time) error {
	for name, page := range map[string]string{"podstead-pod": "pod-file.md", "podstead.toml": "configuration.md"} {
		text, err := os.ReadFile(filepath.Join("docs", "reference", page))
		if err != nil {
			return err
		}
		title, body, _ := bytes.Cut(text, []byte("\n"))
		title = bytes.ToLower(bytes.TrimPrefix(title, []byte("# ")))
		head := fmt.Sprintf("%% %q \"5\" %q %q \"Podstead\"\n\n# NAME\n\n%s - %s of podstead\n\n# DESCRIPTION\n", // as pages of commands
			strings.ToUpper(name), date.Format("Jan 2006"), "Podstead "+version, name, title)
		body = repositoryLink.ReplaceAll(body, []byte("$1"))
		if err := os.WriteFile(filepath.Join(man, name+".5"), md2man.Render(append([]byte(head), body...)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// repositoryLink matches a link to another page, of which a manual page has the text only.
var repositoryLink = lazyregexp.New(`\[([^\]]*)\]\([^)]*\.(?:md|toml|json)?(?:#[^)]*)?\)`)

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
