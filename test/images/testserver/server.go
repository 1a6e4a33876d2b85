package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// server is the state of the handlers. Initially it is healthy and ready.
type server struct {
	unhealthy, unready atomic.Bool
	exit               func(code int)
}

// newServer returns the handler of all pages. /files/ serves dir, if it is not empty. /exit calls exit.
func newServer(dir string, exit func(code int)) http.Handler {
	s := &server{exit: exit}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello from Podstead") })
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { verdict(w, !s.unhealthy.Load()) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { verdict(w, !s.unready.Load()) })
	mux.HandleFunc("/switch", s.change)
	mux.HandleFunc("/slow", slow)
	mux.HandleFunc("/exit", s.exitPage)
	mux.HandleFunc("/env", env)
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/dribble", dribble)
	inside(mux)
	if dir != "" {
		mux.Handle("/files/", http.StripPrefix("/files/", http.FileServer(http.Dir(dir))))
	}
	return mux
}

func verdict(w http.ResponseWriter, good bool) {
	if !good {
		http.Error(w, "switched off", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// change sets the results of /healthz and /readyz: ?healthy=false&ready=true.
func (s *server) change(w http.ResponseWriter, r *http.Request) {
	switches := map[string]*atomic.Bool{"healthy": &s.unhealthy, "ready": &s.unready}
	for name, values := range r.URL.Query() {
		off, known := switches[name]
		on, err := strconv.ParseBool(values[0])
		if !known || err != nil {
			http.Error(w, fmt.Sprintf("%s=%s: want healthy or ready, and true or false", name, values[0]), http.StatusBadRequest)
			return
		}
		off.Store(!on)
	}
	fmt.Fprintf(w, "healthy=%t ready=%t\n", !s.unhealthy.Load(), !s.unready.Load())
}

// slow responds after ?seconds=, which may be a fraction.
func slow(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.ParseFloat(r.FormValue("seconds"), 64)
	if err != nil {
		http.Error(w, "seconds: "+err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
		fmt.Fprintln(w, "done")
	case <-r.Context().Done():
	}
}

// exitPage exits the program with ?code=, without a response. It first writes ?message= to ?file=, by default the container's
// termination log.
func (s *server) exitPage(w http.ResponseWriter, r *http.Request) {
	code, err := strconv.ParseUint(r.FormValue("code"), 10, 8)
	if err != nil {
		http.Error(w, "code: "+err.Error(), http.StatusBadRequest)
		return
	}
	if message := r.FormValue("message"); message != "" {
		file := cmp.Or(r.FormValue("file"), "/dev/termination-log")
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.WriteString(message)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	s.exit(int(code))
}

// env shows the arguments and the environment of the container.
func env(w http.ResponseWriter, _ *http.Request) {
	wd, err := os.Getwd()
	if err != nil {
		wd = err.Error()
	}
	fmt.Fprintf(w, "args=%q\nuid=%d gid=%d\nworkingDir=%s\n%s\n", os.Args, os.Getuid(), os.Getgid(), wd, strings.Join(os.Environ(), "\n"))
}

// dribble sends one byte per second until the client disconnects.
func dribble(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if _, err := w.Write([]byte(".")); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}
