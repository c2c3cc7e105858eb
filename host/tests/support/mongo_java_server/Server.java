import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

/** A MongoDB server in memory on a free port, which it prints; it ends with its standard input. */
public class Server {
    public static void main(String[] arguments) throws Exception {
        MongoServer server = new MongoServer(new MemoryBackend());
        System.out.println(server.bind().getPort());
        while (System.in.read() >= 0) {
        }
        server.shutdownNow();
    }
}
