// SPDX-License-Identifier: Apache-2.0

// controlload measures a server of the control channel (proto/fleet/control.proto) with many agents from one process:
// memory per stream, the time until all have acknowledged one change, and what a reconnect storm costs it.
//
//	controlload -agents 2000 -server 'build/release/bin/control_bench_server'
//	controlload -agents 2000 -server 'controlload -serve'     the same job by grpc-go
//
// A server writes "PORT CAFILE" on its first line, changes one pod of every node for each line that it reads, and ends
// with its stdin. Its memory and CPU time are those that /proc says.
package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

const (
	method = "/flamefleet.fleet.v1alpha1.FleetControl/Connect"
	// USER_HZ, which is 100 on every Linux of ours.
	ticksPerSecond = 100
	// More than any machine needs; a server that hangs must not hang us.
	deadline = 5 * time.Minute
)

var streamDesc = &grpc.StreamDesc{StreamName: "Connect", ClientStreams: true, ServerStreams: true}

// token is what a TokenReview would be asked about; a fake one that says yes answers in both servers.
func token(agent int) string {
	claims := fmt.Sprintf(`{"aud":["flamefleet-operator"],"exp":%d,"node":"n%d"}`, time.Now().Add(time.Hour).Unix(), agent)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmVk"
}

type server struct {
	process *exec.Cmd
	stdin   io.WriteCloser
	address string
	roots   *x509.CertPool
}

func startServer(command string, agents, pods int) *server {
	arguments := append(strings.Fields(command), strconv.Itoa(agents), strconv.Itoa(pods))
	process := exec.Command(arguments[0], arguments[1:]...)
	process.Stderr = os.Stderr
	stdin, err := process.StdinPipe()
	check(err)
	stdout, err := process.StdoutPipe()
	check(err)
	check(process.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	check(err)
	fields := strings.Fields(line)
	pem, err := os.ReadFile(fields[1])
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &server{process, stdin, "127.0.0.1:" + fields[0], roots}
}

func (s *server) rssKiB() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	check(err)
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	check(err)
	return kib
}

func (s *server) cpuSeconds() float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
	check(err)
	fields := strings.Fields(string(stat)[strings.LastIndex(string(stat), ")")+2:])
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return float64(user+system) / ticksPerSecond
}

type agent struct {
	connection *grpc.ClientConn
	cancel     context.CancelFunc
}

// connect opens a stream on a connection of its own and acknowledges what comes; each message is told to `got`.
func connect(s *server, number int, got chan<- struct{}) agent {
	connection, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(s.roots, "")),
		grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(4<<10))
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token(number))
	stream, err := connection.NewStream(ctx, streamDesc, method, grpc.ForceCodec(rawCodec{}))
	check(err)
	check(stream.SendMsg(helloMessage(fmt.Sprintf("n%d", number))))
	go func() {
		for {
			var message []byte
			if stream.RecvMsg(&message) != nil {
				return
			}
			if stream.SendMsg(ackMessage(versionOf(message))) != nil {
				return
			}
			got <- struct{}{}
		}
	}()
	return agent{connection, cancel}
}

// connectAll returns when every agent has its snapshot.
func connectAll(s *server, count int, got chan struct{}) []agent {
	const atOnce = 64 // our own connects under way; the server sees them as fast as both sides can
	agents := make([]agent, count)
	gate := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for number := range agents {
		all.Add(1)
		gate <- struct{}{}
		go func() {
			defer all.Done()
			agents[number] = connect(s, number, got)
			<-gate
		}()
	}
	all.Wait()
	await(got, count)
	return agents
}

func await(got <-chan struct{}, count int) {
	timeout := time.After(deadline)
	for range count {
		select {
		case <-got:
		case <-timeout:
			log.Fatal("an agent got nothing")
		}
	}
}

func run(command string, count, pods int) {
	s := startServer(command, count, pods)
	got := make(chan struct{}, count)
	idleKiB := s.rssKiB()
	began := time.Now()
	agents := connectAll(s, count, got)
	connected := time.Since(began)
	cpu := s.cpuSeconds()
	perStream := float64(s.rssKiB()-idleKiB) / float64(count)

	began = time.Now()
	_, err := io.WriteString(s.stdin, "change\n")
	check(err)
	await(got, count)
	changed, changeCPU := time.Since(began), s.cpuSeconds()-cpu

	for _, a := range agents {
		a.cancel()
		a.connection.Close()
	}
	cpu = s.cpuSeconds()
	began = time.Now()
	connectAll(s, count, got)
	storm := time.Since(began)
	fmt.Printf("%-40s %8.1f %10.2f %10.2f %10.2f %10.2f %10.2f %8.1f\n", command, perStream, connected.Seconds(),
		changed.Seconds(), changeCPU, storm.Seconds(), s.cpuSeconds()-cpu, float64(s.rssKiB())/1024)
	check(s.stdin.Close())
	_ = s.process.Wait()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	serve := flag.Bool("serve", false, "be the server: NODES PODS follow")
	count := flag.Int("agents", 2000, "streams")
	pods := flag.Int("pods", 20, "pods of each node")
	flag.Parse()
	if *serve {
		nodes, _ := strconv.Atoi(flag.Arg(0))
		podsOfEach, _ := strconv.Atoi(flag.Arg(1))
		serveAgents(nodes, podsOfEach)
		return
	}
	fmt.Printf("%-40s %8s %10s %10s %10s %10s %10s %8s\n", "server", "KiB/strm", "connect s", "change s", "change CPU",
		"storm s", "storm CPU", "MiB end")
	for _, command := range flag.Args() {
		run(command, *count, *pods)
	}
}
