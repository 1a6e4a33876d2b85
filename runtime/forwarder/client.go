package forwarder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// requestTimeout bounds a request.
	requestTimeout = 10 * time.Second
	// firstRetry and lastRetry are the times between two attempts to restore the ports after the worker was killed.
	firstRetry, lastRetry = 50 * time.Millisecond, 5 * time.Second
)

// ErrUnavailable reports that the forwarder does not run: it was killed, and a daemon cannot start it.
var ErrUnavailable = errors.New("the forwarder of host ports does not run, any command of podstead starts it")

// Client is the connection of a daemon to the forwarder. It connects with the first request. If the worker was killed, it connects to
// another one and sends all ports to it. It is safe for concurrent use. The caller calls Close.
type Client struct {
	// Program is the absolute path of podstead-monitor. A worker of another build leaves the ports to it; empty: any build has them. It is
	// set before the first request.
	Program string

	socket, namespace string
	log               *slog.Logger

	closed  context.Context //nolint:containedctx // canceled by Close, which ends the restoration
	close   context.CancelFunc
	workers sync.WaitGroup

	sem       chan struct{} // holds a token during requests
	network   Network
	conn      *connection // nil: there is none
	restoring bool
	warned    string // the last reason why sources are not kept

	// mu guards the fields below. It is never held during I/O. Only the holder of sem writes them.
	mu     sync.Mutex
	all    map[string][]Forward
	unsure bool // the worker can have ports that all does not have, such as those of a request that was given up
}

// connection is a connection to a worker.
type connection struct {
	*net.UnixConn
	responses chan response // closed at the end of the connection
}

// NewClient returns a client that does not connect yet. The socket is that of [Socket], and namespace the path of the network namespace of
// pods. The client is used until Close, also after the end of ctx.
func NewClient(ctx context.Context, socket, namespace string, log *slog.Logger) *Client {
	c := &Client{socket: socket, namespace: namespace, log: log, sem: make(chan struct{}, 1), all: map[string][]Forward{}}
	c.closed, c.close = context.WithCancel(context.WithoutCancel(ctx))
	return c
}

// Close closes the connection. The ports stay open.
func (c *Client) Close() {
	c.close()
	c.sem <- struct{}{} // each holder is bounded by timeouts
	c.disconnect()
	c.release()
	c.workers.Wait()
}

// acquire waits for the end of requests.
func (c *Client) acquire(ctx context.Context) error {
	select {
	case c.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the forwarder of host ports: %w", ctx.Err())
	}
}

func (c *Client) release() { <-c.sem }

// needsNothing reports whether a pod has no ports.
func (c *Client) needsNothing(uid string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, had := c.all[uid]
	return !had && !c.unsure
}

// put sets the ports of a pod. The caller holds sem.
func (c *Client) put(uid string, ports []Forward) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[uid] = ports; len(ports) == 0 {
		delete(c.all, uid)
	}
}

// setUnsure sets unsure. The caller holds sem.
func (c *Client) setUnsure(unsure bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsure = unsure
}

// Check returns an [*Error] if a port cannot be bound.
func (c *Client) Check(ctx context.Context, p Port) error {
	if err := c.acquire(ctx); err != nil {
		return err
	}
	defer c.release()
	answer, err := c.do(ctx, request{Check: &p})
	return joined(err, answer.Error)
}

// Set opens the ports of a pod in a network, and closes its other ones. No ports: all are closed. Connections through a port that is
// closed, or is forwarded to another address from now on, are reset. After an error, the pod has the ports of before.
func (c *Client) Set(ctx context.Context, uid string, n Network, ports []Forward) error {
	if len(ports) == 0 && c.needsNothing(uid) {
		return nil
	}
	if err := c.acquire(ctx); err != nil {
		return err
	}
	defer c.release()
	before := c.all[uid]
	c.network = n
	c.put(uid, ports)
	answer, err := c.do(ctx, request{Owner: uid, Ports: ports})
	err = joined(err, answer.Error)
	if len(ports) == 0 && c.hasNoWorker(err) {
		return nil
	}
	if err != nil {
		c.put(uid, before)
	}
	return err
}

// Replace sets the ports of all pods, by UID. The errors of ports are joined. Those ports are tried again, unless [Client.Set] changes
// them.
func (c *Client) Replace(ctx context.Context, n Network, all map[string][]Forward) error {
	if err := c.acquire(ctx); err != nil {
		return err
	}
	defer c.release()
	_, workers := processes(c.socket)
	idle := len(all) == 0 && c.conn == nil && !c.unsure && len(workers) == 0
	c.network = n
	c.mu.Lock()
	c.all = map[string][]Forward{}
	maps.Copy(c.all, all)
	c.mu.Unlock()
	if idle {
		return nil // no worker is started for that
	}
	err := c.replace(ctx)
	if errors.Is(err, ErrUnavailable) && !c.hasNoWorker(err) {
		c.setUnsure(true) // a worker can have ports of an earlier daemon
	}
	if err != nil {
		c.restoreLater()
	}
	return err
}

// replace sends all ports. The caller holds sem.
func (c *Client) replace(ctx context.Context) error {
	if c.conn == nil {
		return c.connect(ctx)
	}
	answer, err := c.exchange(ctx, request{All: c.all})
	return joined(err, slices.Collect(maps.Values(answer.Errors))...)
}

// do sends a request to the worker, and all ports if it is another one. The caller holds sem.
func (c *Client) do(ctx context.Context, r request) (response, error) {
	if c.conn != nil {
		answer, err := c.exchange(ctx, r)
		if err == nil || ctx.Err() != nil {
			return answer, err
		}
	}
	if err := c.connect(ctx); errors.Is(err, ErrUnavailable) {
		return response{}, err
	} else if err != nil { // of ports of other pods
		c.restoreLater()
	}
	return c.exchange(ctx, r)
}

// connect connects to the worker and sends all ports. The caller holds sem. Only after an [ErrUnavailable] there is no connection.
func (c *Client) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	conn, err := c.dial(ctx)
	if c.hasNoWorker(err) {
		c.setUnsure(false)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	c.conn = &connection{conn, make(chan response, 1)}
	reading := c.conn
	c.workers.Go(func() { c.read(reading) })
	answer, err := c.exchange(ctx, request{Program: c.Program, All: c.all})
	if answer.ProgramError != "" {
		c.log.WarnContext(ctx, "host ports are forwarded by another build of the program", slog.String("error", answer.ProgramError))
	}
	return joined(err, slices.Collect(maps.Values(answer.Errors))...)
}

// dial connects to the worker and sends the network namespace.
func (c *Client) dial(ctx context.Context) (*net.UnixConn, error) {
	if err := c.closed.Err(); err != nil {
		return nil, err
	}
	namespace, err := os.Open(c.namespace)
	if err != nil {
		return nil, err
	}
	defer namespace.Close()
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, err
	}
	conn, is := dialed.(*net.UnixConn)
	if !is {
		return nil, errors.Join(unix.EPROTOTYPE, dialed.Close())
	}
	if _, _, err = conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(namespace.Fd())), nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// hasNoWorker reports whether an error means that no worker has ports: none listens on the socket, as one that has left. A worker whose
// socket was removed has its ports.
func (c *Client) hasNoWorker(err error) bool {
	if !errors.Is(err, unix.ENOENT) {
		return errors.Is(err, unix.ECONNREFUSED)
	}
	_, workers := processes(c.socket)
	return len(workers) == 0
}

// read reads the responses until the end of the connection. Then it restores the ports.
func (c *Client) read(conn *connection) {
	in := json.NewDecoder(conn)
	for {
		var r response
		if in.Decode(&r) != nil {
			break
		}
		conn.responses <- r
	}
	close(conn.responses)
	c.sem <- struct{}{}
	defer c.release()
	if c.conn == conn {
		c.disconnect()
	}
	if len(c.all) > 0 || c.unsure {
		c.restoreLater()
	}
}

// disconnect closes the connection. The caller holds sem.
func (c *Client) disconnect() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// exchange sends a request and returns the response. The caller holds sem, and there is a connection. After an error there is none: a late
// response would be that of another request.
func (c *Client) exchange(ctx context.Context, r request) (response, error) {
	answer, err := c.send(ctx, r)
	if err == nil && answer.Failure != "" {
		err = errors.New(answer.Failure)
	}
	if err != nil {
		c.disconnect()
		// A worker that has answered has not done it. Another one may have done it, or does it later.
		c.setUnsure(c.unsure || r.Check == nil && answer.Failure == "")
		return response{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if r.Check == nil {
		c.setUnsure(c.unsure && r.Owner != "") // the request with all ports closes all others
		c.warn(answer.SourceError)
	}
	return answer, nil
}

func (c *Client) send(ctx context.Context, r request) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r.Network = c.network
	deadline, _ := ctx.Deadline()
	if err := c.conn.SetWriteDeadline(deadline); err != nil {
		return response{}, err
	}
	if err := json.NewEncoder(c.conn).Encode(r); err != nil {
		return response{}, err
	}
	select {
	case answer, ok := <-c.conn.responses:
		if !ok {
			return response{}, io.ErrUnexpectedEOF
		}
		return answer, nil
	case <-ctx.Done():
		return response{}, ctx.Err()
	}
}

// warn logs once why clients have the address of the gateway. The caller holds sem.
func (c *Client) warn(reason string) {
	if reason != "" && reason != c.warned {
		c.log.Warn("pods see the address of their gateway in place of that of clients of host ports", slog.String("error", reason))
	}
	c.warned = reason
}

// restoreLater starts the restoration of all ports, unless it runs. The caller holds sem.
func (c *Client) restoreLater() {
	if c.restoring || c.closed.Err() != nil {
		return
	}
	c.restoring = true
	c.workers.Go(c.restore)
}

// restore sends all ports until that succeeds or the client is closed: the worker was killed, or ports could not be opened.
func (c *Client) restore() {
	said := false
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		select {
		case <-time.After(wait):
		case <-c.closed.Done():
			return
		}
		c.sem <- struct{}{}
		var err error
		if len(c.all) > 0 || c.unsure {
			err = c.replace(c.closed)
		}
		if err == nil {
			c.restoring = false
			c.log.Info("host ports of pods are set")
		} else if !said {
			c.log.Warn("host ports of pods are not set, retrying", slog.Any("error", err))
			said = true
		}
		c.release()
		if err == nil {
			return
		}
	}
}

// joined joins an error with those of ports.
func joined(err error, ports ...*Error) error {
	errs := []error{err}
	for _, p := range ports {
		if p != nil {
			errs = append(errs, p)
		}
	}
	return errors.Join(errs...)
}
