package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// never is a duration without end.
const never = time.Duration(-1)

// part is what an actor does.
type part struct {
	name, dir            string
	delay, run, term     time.Duration
	leave                time.Duration
	until, ifFile, touch string
	eat                  string
	exit                 []int
}

func parse(dir string, args []string) (*part, error) {
	if len(args) == 0 {
		return nil, errors.New("a name is required")
	}
	p := &part{name: args[0], dir: dir, run: never, exit: []int{0}}
	durations := map[string]*time.Duration{"delay": &p.delay, "run": &p.run, "term": &p.term, "leave": &p.leave}
	files := map[string]*string{"until": &p.until, "if": &p.ifFile, "touch": &p.touch}
	for _, arg := range args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		var err error
		switch {
		case arg == "term=never":
			p.term = never
		case durations[key] != nil:
			*durations[key], err = time.ParseDuration(value)
		case files[key] != nil && value != "":
			*files[key] = value
		case key == "eat" && (value == "self" || value == "child"):
			p.eat = value
		case key == "exit":
			p.exit, err = numbers(value)
		default:
			err = errors.New("unknown key, or no value")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arg, err)
		}
	}
	return p, nil
}

func numbers(list string) (all []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

func (p *part) at(file string) string { return filepath.Join(p.dir, file) }

func (p *part) exists(file string) bool {
	_, err := os.Stat(p.at(file))
	return err == nil
}

// log is the name of the shared file.
const log = "log"

// record writes a line. Each line is one append, so the lines of several actors do not mix.
func (p *part) record(event string) error {
	f, err := os.OpenFile(p.at(log), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666) // actors may have different users
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s %s\n", time.Now().UTC().Format("2006-01-02T15:04:05.000000000Z"), p.name, event)
	return errors.Join(err, f.Close())
}

// runs returns how often the actor has started before.
func (p *part) runs() (int, error) {
	text, err := os.ReadFile(p.at(log))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return strings.Count(string(text), " "+p.name+" Starting\n"), nil
}

// leaveBehind starts the process that outlives this one.
func (p *part) leaveBehind() error {
	if p.leave == 0 {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, p.name+"-left", "run="+p.leave.String()) // outlives this process on purpose
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Start()
}

// eatMemory allocates memory, or starts a child that does.
func (p *part) eatMemory() error {
	switch p.eat {
	case "self":
		for held := []byte{1}; ; {
			held = append(held, held...) // written, so the pages are allocated
		}
	case "child":
		self, err := os.Executable()
		if err != nil {
			return err
		}
		err = exec.Command(self, p.name+"-child", "eat=self").Run() // the kernel kills it
		if _, killed := errors.AsType[*exec.ExitError](err); !killed {
			return fmt.Errorf("child was not killed: %v", err) //nolint:errorlint // err may be nil
		}
		return p.record("ChildKilled")
	}
	return nil
}
