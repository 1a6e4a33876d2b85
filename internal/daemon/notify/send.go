package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/supervisor/event"
)

const (
	// maxBody is how much of a response is read.
	maxBody = 64 << 10
	// maxFile is the maximum size of a file with headers, certificates or a URL.
	maxFile = 1 << 20
	// maxVariable is the maximum size of an environment variable. The limit of the kernel is 128 KiB.
	maxVariable = 32 << 10
	// outputTimeout bounds the wait for the output of processes that are not in the process group of a command.
	outputTimeout = time.Second
)

// Message is what a receiver gets.
type Message struct {
	ID       string      `json:"id"` // the same when the event is sent again
	Notifier string      `json:"notifier"`
	Host     string      `json:"host"`
	Text     string      `json:"text"` // one line
	Event    event.Event `json:"event"`
}

// NewMessage returns the message for an event.
func NewMessage(notifier, id string, e *event.Event) Message {
	host, _ := os.Hostname() // fails on no supported host
	subject := ""
	if e.Pod != "" {
		subject = " pod " + e.Pod
	}
	text := fmt.Sprintf("%s%s: %s %s: %s", host, subject, e.Level, e.Reason, e.Message)
	return Message{ID: id, Notifier: notifier, Host: host, Event: *e, Text: plain.Text(text)}
}

// Send sends a message once. Errors do not have what may be secret: URLs, headers, and output of the command. The output is written to
// output, which may be nil.
func Send(ctx context.Context, n *config.Notifier, m *Message, output io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, n.Limit())
	defer cancel()
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(n.Command) > 0 {
		err = runCommand(ctx, n, m, body, output)
	} else {
		err = post(ctx, n, m, body)
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s: no success within %v", n.Target(), n.Limit())
	}
	return err
}

// runCommand runs the command in a process group of its own, which is killed at the end of ctx.
func runCommand(ctx context.Context, n *config.Notifier, m *Message, body []byte, output io.Writer) error {
	cmd := exec.CommandContext(ctx, n.Command[0], n.Command[1:]...)
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(body), output, output
	e := &m.Event
	cmd.Env = []string{ // not that of the daemon, which has its sockets and credentials
		"PATH=" + os.Getenv("PATH"), "PODSTEAD_NOTIFIER=" + n.Name, "PODSTEAD_ID=" + m.ID, "PODSTEAD_HOST=" + m.Host,
		"PODSTEAD_POD=" + e.Pod,
		"PODSTEAD_CONTAINER=" + e.Container, "PODSTEAD_REASON=" + e.Reason, "PODSTEAD_TYPE=" + string(e.Level),
		"PODSTEAD_MESSAGE=" + variable(e.Message),
	}
	// The command is killed with a daemon that is killed. The signal is sent when the thread exits, so the goroutine keeps it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = outputTimeout
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what the command has left behind
	}
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success() ||
		errors.Is(err, syscall.EPIPE) && cmd.ProcessState.Success() {
		return nil // a command need not read its input
	}
	return fmt.Errorf("run %s: %w", n.Command[0], cause(err))
}

// variable returns text, which can be that of a container, as the value of an environment variable. The kernel refuses a process whose
// variables have a NUL or are too long, and the events behind this one would wait for a day.
func variable(text string) string {
	if len(text) > maxVariable {
		text = text[:maxVariable] + "…"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// post sends the message to the URL. It follows no redirects: the headers are for this host.
func post(ctx context.Context, n *config.Notifier, m *Message, body []byte) error {
	request, err := newRequest(ctx, n, m, body)
	if err != nil {
		return err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	if n.CAFile != "" {
		pem, err := readFile(n.CAFile)
		if err != nil {
			return fmt.Errorf("read caFile: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return fmt.Errorf("caFile %s: no certificate in PEM format", n.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	client := &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	host := request.URL.Scheme + "://" + request.URL.Host
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("post to %s: %w", host, cause(err))
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxBody)) // the status is known
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("post to %s: HTTP status %d %s", host, response.StatusCode, http.StatusText(response.StatusCode))
	}
	return nil
}

func newRequest(ctx context.Context, n *config.Notifier, m *Message, body []byte) (*http.Request, error) {
	target := n.URL
	if n.URLFile != "" {
		data, err := readFile(n.URLFile)
		if err != nil {
			return nil, fmt.Errorf("read urlFile: %w", err)
		}
		target = strings.TrimSpace(string(data))
		if err := config.CheckURL(target); err != nil {
			return nil, fmt.Errorf("urlFile %s: %w", n.URLFile, err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, cause(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "podstead")
	request.Header.Set("Idempotency-Key", m.ID)
	if n.HeadersFile == "" {
		return request, nil
	}
	data, err := readFile(n.HeadersFile)
	if err != nil {
		return nil, fmt.Errorf("read headersFile: %w", err)
	}
	if err := addHeaders(request, string(data)); err != nil {
		return nil, fmt.Errorf("headersFile %s: %w", n.HeadersFile, err)
	}
	return request, nil
}

// addHeaders sets the headers of a file. Its lines are NAME: VALUE, comments that begin with #, or empty. Errors have no values.
func addHeaders(request *http.Request, text string) error {
	for number, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !found || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("line %d: must be NAME: VALUE", number+1)
		}
		if name = textproto.CanonicalMIMEHeaderKey(name); name == "Host" {
			request.Host = value
			continue
		}
		request.Header.Set(name, value)
	}
	return nil
}

// readFile reads a regular file: another one could block. One of the kernel is read too: a virtual machine has secrets of its host in
// /sys/firmware/qemu_fw_cfg.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: must be a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxFile)
	}
	return data, err
}

// cause removes the URL, the path of a program and its arguments from an error.
func cause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}
