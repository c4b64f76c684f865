import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginsLoader;

/**
 * Starts a node of Elasticsearch 8 or 9 from its jars, given its home, as the
 * program of a distribution does, but without its launcher, its sandbox and its
 * module path.
 */
public class Start {
    @SuppressWarnings({"unchecked", "rawtypes"})
    public static void main(String[] args) throws Exception {
        Path home = Path.of(args[0]);
        LogConfigurator.configureESLogging();
        Settings settings = Settings.builder().loadFromPath(home.resolve("config/elasticsearch.yml")).put("path.home", home.toString()).build();
        LogConfigurator.configureWithoutConfig(settings);
        Environment environment = new Environment(settings, home.resolve("config"));
        Set modules = bundles("loadModulesBundles", environment.modulesDir());
        Set plugins = bundles("loadPluginsBundles", environment.pluginsDir());
        new Node(environment, PluginsLoader.createPluginsLoader(modules, plugins, Map.of(), false)).start();
        Thread.currentThread().join();
    }

    /** Version 9 has a second parameter. */
    private static Set bundles(String name, Path dir) throws Exception {
        for (Method m : PluginsLoader.class.getMethods()) {
            if (m.getName().equals(name)) {
                return (Set) (m.getParameterCount() == 1 ? m.invoke(null, dir) : m.invoke(null, dir, false));
            }
        }
        throw new NoSuchMethodException(name);
    }
}
