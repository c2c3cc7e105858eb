/** The server on the port that the first argument gives, until it is killed. */
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

public class On {
    public static void main(String[] arguments) throws Exception {
        new MongoServer(new MemoryBackend()).bind("127.0.0.1", Integer.parseInt(arguments[0]));
        Thread.currentThread().join();
    }
}
