package api

import (
	"context"
	"net/url"
	"strconv"

	"github.com/podstead/podstead/api/channel"
)

// PortConn is a connection to a port of a pod. It must be closed. It is safe for concurrent use by one reader and one writer.
type PortConn struct{ conn *channel.Conn }

// Read implements io.Reader. The error is io.EOF after the pod has closed its direction, and another one after the connection was lost.
func (p *PortConn) Read(b []byte) (int, error) { return p.conn.Reader(channel.Data).Read(b) }

// Write implements io.Writer. It blocks while the pod does not read.
func (p *PortConn) Write(b []byte) (int, error) { return p.conn.Writer(channel.Data).Write(b) }

// CloseWrite closes the direction to the pod, which reads the end of the data. The other direction stays open.
func (p *PortConn) CloseWrite() error { return p.conn.Writer(channel.Data).Close() }

// Close closes the connection.
func (p *PortConn) Close() error {
	p.conn.Close()
	return nil
}

// DialPort connects to a TCP port of a pod, on its loopback interface. With a UID, the pod must have it. If the pod refuses the connection,
// the error is an [*Error] with status 502. The context bounds only the start.
func (c *Client) DialPort(ctx context.Context, pod, uid string, port uint16) (*PortConn, error) {
	q := url.Values{"port": {strconv.Itoa(int(port))}}
	if uid != "" {
		q.Set("uid", uid)
	}
	conn, err := c.connect(ctx, podPath(pod)+"/portforward", q, channel.Data)
	if err != nil {
		return nil, err
	}
	return &PortConn{conn}, nil
}
