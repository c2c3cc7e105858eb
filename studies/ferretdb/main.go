// A server that speaks MongoDB's protocol and keeps its data in SQLite files: FerretDB, with mongod's own options.
// It is for boards that no build of mongod runs on, and for tests of what a server with a disk does.
//
//	mongod --dbpath FOLDER --port PORT [--bind_ip ADDRESS] [--version]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

const library = "github.com/FerretDB/FerretDB"

func main() {
	log.SetFlags(0)
	folder := flag.String("dbpath", "/data/db", "folder of the SQLite files")
	port := flag.String("port", "27017", "TCP port")
	address := flag.String("bind_ip", "127.0.0.1", "address")
	version := flag.Bool("version", false, "print the version of FerretDB")
	flag.Parse()
	if *version {
		fmt.Println(versionLine())
		return
	}
	if err := serve(*folder, net.JoinHostPort(*address, *port)); err != nil {
		log.Fatal("mongod (FerretDB): ", err)
	}
}

// versionLine names FerretDB and its version, never mongod's.
func versionLine() string {
	if build, known := debug.ReadBuildInfo(); known {
		for _, part := range build.Deps {
			if part.Path == library {
				return "FerretDB " + part.Version + ", on SQLite"
			}
		}
	}
	return "FerretDB, on SQLite"
}

// serve answers until SIGTERM or SIGINT.
func serve(folder, address string) error {
	whole, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: address},
		Logger:    logger,
		Handler:   "sqlite",
		SQLiteURL: "file:" + whole + "/",
	})
	if err != nil {
		return err
	}
	until, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := server.Run(until); err != nil && until.Err() == nil {
		return err
	}
	return nil
}
