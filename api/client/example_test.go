package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
)

// List the pods with their phases.
func ExampleClient_Pods() {
	daemon := startDaemon("exit 0") // a daemon for this example, in this process
	defer daemon.stop()
	daemon.await(true)

	c := client.New(daemon.socket, "podstead get")
	defer c.Close()
	list, err := c.Pods(context.Background())
	if err != nil {
		log.Print(err)
		return
	}
	for _, pod := range list.Items {
		fmt.Println(pod.Metadata.Name, pod.Status.Phase)
	}
	// Output: web Succeeded
}

// Wait until all containers of a pod are ready.
func ExampleClient_Watch() {
	daemon := startDaemon("sleep 1000")
	defer daemon.stop()

	c := client.New(daemon.socket, "podstead wait")
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for change, err := range c.Watch(ctx) {
		if err != nil { // also the end of the context
			log.Print(err)
			return
		}
		pod := change.Object // the zero value for [api.Listed]
		if pod.Metadata.Name != "web" {
			continue
		}
		if change.Type == api.Deleted {
			fmt.Println("web was deleted")
			return
		}
		ready := 0
		for _, status := range pod.Status.ContainerStatuses {
			if status.Ready {
				ready++
			}
		}
		if ready > 0 && ready == len(pod.Status.ContainerStatuses) {
			fmt.Println("web is ready")
			return // ends the watch
		}
	}
	// Output: web is ready
}

// Follow the output of a pod until it completes, also over restarts of the daemon.
func ExampleClient_Output() {
	daemon := startDaemon("echo one; echo two; sleep 0.2; echo three")
	defer daemon.stop()

	c := client.New(daemon.socket, "podstead logs")
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	at := api.Positions{}
	follow := func() error {
		for line, err := range c.Output(ctx, "web", client.OutputQuery{Follow: true, From: at}) {
			if err != nil {
				return err
			}
			at.Advance(line)
			fmt.Println(line.Line)
			if line.Line == "one" {
				daemon.restart(ctx)
			}
		}
		return nil
	}
	err := follow()
	for errors.Is(err, api.ErrUnavailable) {
		select {
		case <-time.After(10 * time.Millisecond): // longer in a program
			err = follow() // continues after the last line
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		log.Print(err)
	}
	// Output:
	// one
	// two
	// three
}

// Follow the events of a pod, and continue after the connection was lost.
func ExampleClient_Events() {
	daemon := startDaemon("sleep 0.2; exit 3")
	defer daemon.stop()

	c := client.New(daemon.socket, "podstead events")
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	query := &client.EventQuery{Follow: true, Pod: "web"}
	follow := func() error {
		for event, err := range c.Events(ctx, query) {
			if err != nil {
				return err
			}
			query.Advance(event)
			switch event.Kind { //nolint:exhaustive // later versions add kinds
			case api.EventsMissed:
				fmt.Println(event.Fields["missed"], "events are no longer kept")
			case api.EventPodAccepted:
				fmt.Println(event.Message)
				daemon.restart(ctx)
			case api.EventContainerFailed:
				fmt.Println(event.Container, event.Reason, event.Fields["code"])
			case api.EventPodFailed:
				fmt.Println(event.Message)
				return nil
			}
		}
		return nil
	}
	err := follow()
	for errors.Is(err, api.ErrUnavailable) {
		select {
		case <-time.After(10 * time.Millisecond): // longer in a program
			err = follow() // continues after the last event
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		log.Print(err)
	}
	// Output:
	// Pod accepted
	// main Exited 3
	// Pod failed
}

// Run a command in a container. Its exit code is not an error.
func ExampleClient_Exec() {
	daemon := startDaemon("sleep 1000")
	defer daemon.stop()
	daemon.await(false)

	c := client.New(daemon.socket, "podstead exec")
	defer c.Close()
	code, err := c.Exec(context.Background(), "web", client.ExecOptions{
		Container: "main",
		Command:   []string{"grep", "root", "/etc/none"},
		Streams:   client.Streams{Stdout: os.Stdout, Stderr: os.Stdout},
	})
	fmt.Println("exit code", code, err)

	_, err = c.Exec(context.Background(), "web", client.ExecOptions{Command: []string{"none"}})
	if e, ok := errors.AsType[*api.CommandError](err); ok {
		fmt.Println("not executed:", e.Code, e.Message)
	}
	// Output:
	// grep: /etc/none: No such file or directory
	// exit code 2 <nil>
	// not executed: 127 none: not found
}

// Create a pod from a file, which is kept in the pods directory. A second call changes nothing.
func ExampleClient_Apply() {
	daemon := startDaemon("")
	defer daemon.stop()

	c := client.New(daemon.socket, "podstead apply")
	defer c.Close()
	request := api.ApplyRequest{
		File: "/srv/web.toml", // relative paths in the text are relative to its directory
		Text: `name = "web"

[[containers]]
name = "main"
image = "registry.example/web:1"
command = ["sleep", "1000"]
`,
	}
	for range 2 {
		applied, err := c.Apply(context.Background(), request)
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Println(applied.Pod, applied.Outcome)
	}
	// Output:
	// web created
	// web unchanged
}

// Distinguish errors by their reason.
func Example_errors() {
	daemon := startDaemon("")
	socket := daemon.socket

	c := client.New(socket, "podstead get")
	defer c.Close()
	report := func(err error) {
		e, ok := errors.AsType[*api.Error](err)
		switch {
		case err == nil:
			fmt.Println("success")
		case errors.Is(err, api.ErrUnavailable): // first: the response of a stopping daemon is also an Error
			fmt.Println("try again when the daemon is running")
		case ok && e.Reason == api.ReasonNotFound:
			fmt.Println("create it first:", e.Message)
		case ok && e.Reason == api.ReasonInvalid:
			for _, p := range e.Problems {
				fmt.Println("correct the file:", p.Path, p.Message)
			}
		default:
			fmt.Println(err)
		}
	}
	_, err := c.Pod(context.Background(), "web")
	report(err)
	_, err = c.Apply(context.Background(), api.ApplyRequest{File: "/srv/web.toml", Text: "name = \"web\"\n"})
	report(err)
	daemon.stop()
	_, err = c.Pod(context.Background(), "web")
	report(err)
	// Output:
	// create it first: no such pod "web"
	// correct the file: containers Required value
	// try again when the daemon is running
}
