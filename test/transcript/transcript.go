// Package transcript runs the commands of Markdown pages, and compares their output with the pages. It is for tests only.
//
// Every fenced block of a page must be a console block, with commands after "$ " and their output, or a file that a comment in its first
// line names. Code in tables and sentences that starts with the name of the program is a command without output. Nothing can be exempt.
// Some commands that only read are repeated until their output is that of the page.
package transcript

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Step is a file to write or a command to run.
type Step struct {
	// Line is the line of the page, starting with 1.
	Line int
	// File is the name of a file with the content Text; empty: the step is a command.
	File, Text string
	// Command is a line for the shell.
	Command string
	// Output are the lines that the page shows. Checked reports whether the page shows the output: code in tables has none.
	Output  []string
	Checked bool
	// Interrupt requests Ctrl-C after the output, which the page shows as ^C.
	Interrupt bool
}

var (
	fileName = regexp.MustCompile(`^# ([\w@./-]+\.\w+)$`)
	codeSpan = regexp.MustCompile("`([^`]+)`")
)

// Parse returns the steps of a page in order. The program is the name that commands outside of blocks start with.
func Parse(page, program string) ([]Step, error) {
	var steps []Step
	var errs []error
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		info, fenced := strings.CutPrefix(lines[i], "```")
		if !fenced {
			for _, span := range codeSpan.FindAllStringSubmatch(lines[i], -1) {
				if command := strings.ReplaceAll(span[1], `\|`, "|"); strings.HasPrefix(command, program+" ") {
					steps = append(steps, Step{Line: i + 1, Command: command, Interrupt: endless.MatchString(command)})
				}
			}
			continue
		}
		start := i + 1
		for i++; i < len(lines) && lines[i] != "```"; i++ {
		}
		block := lines[start:min(i, len(lines))]
		switch found, err := parseBlock(block, info, start+1); {
		case err != nil:
			errs = append(errs, fmt.Errorf("line %d: %w", start, err))
		default:
			steps = append(steps, found...)
		}
	}
	return steps, errors.Join(errs...)
}

// endless matches commands that run until the user interrupts them.
var endless = regexp.MustCompile(`^\w+ (logs .*(-f|--follow)|events .*(-f|--follow|-w|--watch)|get .*(-w|--watch)|top ` +
	`.*(-w|--watch)|stats|port-forward .*|run [^-].*|attach .*)\b`)

// parseBlock returns the steps of a fenced block, whose first line has a number.
func parseBlock(block []string, info string, number int) ([]Step, error) {
	if info != "console" {
		if len(block) == 0 || fileName.FindStringSubmatch(block[0]) == nil {
			return nil, errNoName
		}
		return []Step{{Line: number, File: fileName.FindStringSubmatch(block[0])[1], Text: strings.Join(block, "\n") + "\n"}}, nil
	}
	var steps []Step
	for i, line := range block {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case isCommand:
			steps = append(steps, Step{Line: number + i, Command: command, Checked: true})
		case len(steps) == 0:
			return nil, errNoCommand
		case line == "^C":
			steps[len(steps)-1].Interrupt = true
		default:
			last := &steps[len(steps)-1]
			last.Output = append(last.Output, line)
		}
	}
	if len(steps) == 0 {
		return nil, errNoCommand
	}
	return steps, nil
}

var (
	errNoName    = errors.New("the block is neither a console block nor a file: its first line must be # NAME")
	errNoCommand = errors.New("the console block must start with a command, after $")
)

// variable are the parts of an output that differ between two runs, each with its placeholder.
var variable = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "CLOCK"},
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`), "ADDRESS"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`\b(sha256:)?[0-9a-f]{64}\b`), "DIGEST"},
	{regexp.MustCompile(`\b[0-9a-f]{12}\b`), "ID"},
	{regexp.MustCompile(`\bpid \d+`), "pid N"},
	{regexp.MustCompile(`(^|\s)(\d+(\.\d+)?(ms|µs|[smhd]))+(\s|$)`), " AGE "},
	{regexp.MustCompile(`\((\d+[smhd])+ ago\)`), "(AGE ago)"},
	{regexp.MustCompile(`\b\d+(\.\d+)?([KMGT]i?B?|m|n| [KMGT]iB| bytes)(\s|[/),]|$)`), "SIZE$3"},
	{regexp.MustCompile(`\b\d+%`), "PERCENT"},
	{regexp.MustCompile(`\s+`), " "},
}

// plain returns a line without what differs between two runs. Columns are separated by one space.
func plain(line string) string {
	for _, v := range variable {
		line = v.pattern.ReplaceAllString(line, v.as)
	}
	return strings.TrimSpace(line)
}

// Compare compares the lines that a page shows with an output. In the page, a line of three dots stands for any number of lines, and three
// dots at the end of a line for any text. Times, ages, addresses, IDs, sizes and the width of columns are not compared. If the output may
// continue, only its first lines are compared.
func Compare(shown []string, output string, continues bool) error {
	var got []string
	if output != "" {
		got = strings.Split(strings.TrimSuffix(output, "\n"), "\n")
	}
	if matches(shown, got, continues) {
		return nil
	}
	return fmt.Errorf("output:\n%s\nwant:\n%s", output, strings.Join(shown, "\n"))
}

func matches(shown, got []string, continues bool) bool {
	switch {
	case len(shown) == 0:
		return len(got) == 0 || continues
	case shown[0] == "...":
		for skip := range len(got) + 1 {
			if matches(shown[1:], got[skip:], continues) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && same(shown[0], got[0]) && matches(shown[1:], got[1:], continues)
}

// same compares two lines. Three dots at the end of the shown one stand for any text.
func same(shown, got string) bool {
	if start, open := strings.CutSuffix(shown, " ..."); open {
		return strings.HasPrefix(plain(got), plain(start))
	}
	return plain(shown) == plain(got)
}
