package metrics

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

const (
	// maxConnections is the number of connections to the address. Further ones wait.
	maxConnections = 16
	// readTimeout, writeTimeout and idleTimeout bound the parts of a connection.
	readTimeout  = 10 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 15 * time.Second // idle connections keep others waiting
	maxHeader    = 16 << 10
	// certInterval is the shortest time between two looks at the certificate.
	certInterval = 10 * time.Second
	// listenInterval is the time between two attempts to listen.
	listenInterval = 5 * time.Second
)

// Address is where metrics are served.
type Address struct {
	Address           string // host:port
	CertFile, KeyFile string // empty: without TLS
}

// Serve serves GET /metrics at an address until ctx ends. If it cannot listen, it logs that once and tries again: pods do not depend on it.
func (m *Metrics) Serve(ctx context.Context, a Address) {
	m.serving(false)
	server := &http.Server{
		Handler: m.handler(), ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: m.idle,
		MaxHeaderBytes: maxHeader, BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog: slog.NewLogLogger(m.o.Log.Handler(), slog.LevelDebug), // clients can cause errors as often as they want
	}
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := m.listen(ctx, a)
	if l == nil {
		return
	}
	background.Go(func() {
		<-ctx.Done()
		_ = server.Close()
	})
	m.serving(true)
	m.o.Log.LogAttrs(ctx, slog.LevelInfo, "serving metrics", slog.String("address", l.Addr().String()), slog.Bool("tls", a.CertFile != ""))
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		m.o.Log.LogAttrs(ctx, slog.LevelError, "metrics are not served any more", slog.Any("error", err))
		m.serving(false)
	}
}

// serving sets whether the address is served.
func (m *Metrics) serving(up bool) { m.address.Store(&up) }

// listen listens as soon as that is possible; nil: ctx is done.
func (m *Metrics) listen(ctx context.Context, a Address) net.Listener {
	reported := ""
	for {
		l, err := m.open(ctx, a)
		if err == nil {
			return l
		}
		if err.Error() != reported {
			reported = err.Error()
			m.o.Log.LogAttrs(ctx, slog.LevelError, "cannot serve metrics, retrying", slog.Any("error", err))
		}
		select {
		case <-time.After(listenInterval):
		case <-ctx.Done():
			return nil
		}
	}
}

// open listens.
func (m *Metrics) open(ctx context.Context, a Address) (net.Listener, error) {
	var c *certificate
	if a.CertFile != "" {
		c = &certificate{cert: a.CertFile, key: a.KeyFile, log: m.o.Log}
		if err := c.load(); err != nil {
			return nil, err
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.Address)
	if err != nil {
		return nil, fmt.Errorf("metrics.address: %w", err)
	}
	l = netutil.LimitListener(l, maxConnections)
	if c == nil {
		return l, nil
	}
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}), nil
}

// handler serves the metrics at /metrics, and nothing else.
func (m *Metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not found: metrics are at /metrics", http.StatusNotFound)
	})
	return mux
}

// certificate is a certificate that is loaded again when its files change. It is safe for concurrent use.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	looked time.Time // when the files were last compared with seen
	seen   [2]version
	newest *tls.Certificate
}

// version tells two contents of a file apart.
type version struct {
	modified time.Time
	size     int64
}

// load loads the certificate.
func (c *certificate) load() error {
	c.looked, c.seen = time.Now(), c.versions()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("metrics.certFile, metrics.keyFile: %w", err)
	}
	c.newest = &pair
	return nil
}

func (c *certificate) versions() (v [2]version) {
	for i, path := range []string{c.cert, c.key} {
		if st, err := os.Stat(path); err == nil {
			v[i] = version{st.ModTime(), st.Size()}
		}
	}
	return v
}

// get returns the certificate for a connection. It loads the certificate first if a file has changed, and looks for that at most every 10
// seconds. While the files are invalid, it returns the certificate before.
func (c *certificate) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < certInterval {
		return c.newest, nil
	}
	if c.looked = time.Now(); c.versions() == c.seen {
		return c.newest, nil
	}
	if err := c.load(); err != nil {
		c.log.LogAttrs(hello.Context(), slog.LevelWarn, "using the certificate before", slog.Any("error", err))
	} else {
		c.log.LogAttrs(hello.Context(), slog.LevelInfo, "loaded the certificate of the metrics", slog.String("file", c.cert))
	}
	return c.newest, nil
}
